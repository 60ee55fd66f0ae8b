/*
 * Describes an address in a thread: which variable of which call, or which thread-local variable.
 */
#include "analyzer/program/debug/debug_parts.h"
#include "analyzer/program/expression.h"

#include <dwarf.h>
#include <inttypes.h>

enum { MOST_VARIABLES = 4096 };

/* A variable found, the way into it included. */
struct local {
	const char *path; /* as "session.user" */
	bool parameter;
	size_t inlining; /* how many of the functions inlined there are within */
};

/* The inputs of a location expression. */
struct evaluation {
	struct debug *debug;
	const struct frame_state *state;
	uint64_t frame_end; /* the canonical frame address; 0: not known */
	uint64_t address;   /* of the code, less the bias */
	Dwarf_Die *function;
};

static bool evaluate(const struct evaluation *evaluation, Dwarf_Attribute *attribute,
		     struct expression_context context, uint64_t *ret)
{
	Dwarf_Op *operations;
	size_t count;

	context.image = evaluation->debug->image;
	context.registers = evaluation->state->registers;
	context.known = evaluation->state->known;
	context.frame_address = evaluation->frame_end;
	return dwarf_getlocation_addr(attribute, evaluation->address, &operations, &count, 1) ==
		       1 &&
	       expression_evaluate(&context, operations, count, ret);
}

static bool find_base(const void *data, uint64_t *ret)
{
	const struct evaluation *evaluation = data;
	Dwarf_Attribute attribute;

	return dwarf_attr_integrate(evaluation->function, DW_AT_frame_base, &attribute) &&
	       evaluate(evaluation, &attribute, (struct expression_context){ .is_base = true },
			ret);
}

/* The way into the variable to the address, if it covers that. */
static const char *cover(const struct evaluation *evaluation, Dwarf_Die *variable, uint64_t address)
{
	const struct expression_context context = { .base = find_base, .data = evaluation };
	struct type_path path = { .used = 0 };
	Dwarf_Attribute attribute;
	const char *name;
	Dwarf_Word size = 0;
	Dwarf_Die type;
	uint64_t start;

	if (!dwarf_attr_integrate(variable, DW_AT_location, &attribute) ||
	    !evaluate(evaluation, &attribute, context, &start) || start > address ||
	    !entry_type(variable, &type))
		return NULL;
	/* The size of an array with computed bounds is unknown, so only its start matches. */
	if (dwarf_aggregate_size(&type, &size) != 0)
		size = 1;
	name = debug_entry_name(evaluation->debug, variable);
	if (address - start >= size || !name)
		return NULL;
	type_path_add(&path, &type, address - start);
	return name_pool_print(&evaluation->debug->names, "%s%s", name, path.text);
}

/* The value of what is in a register as a whole, or where it stands in memory. */
static bool locate(const struct evaluation *evaluation, Dwarf_Die *variable,
		   struct local_value *ret)
{
	const struct expression_context context = { .base = find_base, .data = evaluation };
	const struct frame_state *state = evaluation->state;
	Dwarf_Attribute attribute;
	Dwarf_Op *operations;
	size_t count;
	unsigned int number;

	if (!dwarf_attr_integrate(variable, DW_AT_location, &attribute))
		return false;
	*ret = (struct local_value){ .is_in_memory = true };
	if (evaluate(evaluation, &attribute, context, &ret->address))
		return true;
	if (dwarf_getlocation_addr(&attribute, evaluation->address, &operations, &count, 1) != 1 ||
	    count != 1 || operations[0].atom < DW_OP_reg0 || operations[0].atom > DW_OP_reg31)
		return false;
	number = operations[0].atom - DW_OP_reg0;
	if (number >= MOST_UNWOUND || !(state->known >> number & 1))
		return false;
	*ret = (struct local_value){ .value = state->registers[number] };
	return true;
}

static bool visit_scope(const struct evaluation *evaluation, Dwarf_Die *scope,
			bool (*visit)(void *data, const struct local_value *value, Dwarf_Die *type),
			void *data)
{
	struct local_value value;
	Dwarf_Die entry, type;
	size_t looked = 0;

	if (dwarf_child(scope, &entry) != 0)
		return true;
	do {
		int tag = dwarf_tag(&entry);

		if ((tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) &&
		    entry_type(&entry, &type) && locate(evaluation, &entry, &value) &&
		    !visit(data, &value, &type))
			return false;
	} while (++looked < MOST_VARIABLES && dwarf_siblingof(&entry, &entry) == 0);
	return true;
}

/* The scopes of the frame, from the innermost block out to the function; 0: none is known. */
static size_t find_scopes(struct debug *debug, const struct frame *frame,
			  const struct frame_state *state, Dwarf_Die scopes[static MOST_SCOPES],
			  struct evaluation *ret)
{
	struct code_place place;
	size_t count =
		code_place_find(debug, state->address, &place) ? code_scopes(&place, scopes) : 0;

	if (count > 0)
		*ret = (struct evaluation){ debug, state, frame->end, place.address,
					    &scopes[count - 1] };
	return count;
}

bool locals_visit(struct debug *debug, const struct frame *frame, const struct frame_state *state,
		  bool (*visit)(void *data, const struct local_value *value, Dwarf_Die *type),
		  void *data)
{
	struct evaluation evaluation;
	Dwarf_Die scopes[MOST_SCOPES];
	size_t count = find_scopes(debug, frame, state, scopes, &evaluation);

	for (size_t i = 0; i < count; i++)
		if (!visit_scope(&evaluation, &scopes[i], visit, data))
			return false;
	return true;
}

static bool find_in_scope(const struct evaluation *evaluation, Dwarf_Die *scope, uint64_t address,
			  struct local *ret)
{
	Dwarf_Die entry;
	size_t looked = 0;

	if (dwarf_child(scope, &entry) != 0)
		return false;
	do {
		int tag = dwarf_tag(&entry);

		if (tag != DW_TAG_variable && tag != DW_TAG_formal_parameter)
			continue;
		ret->path = cover(evaluation, &entry, address);
		ret->parameter = tag == DW_TAG_formal_parameter;
		if (ret->path)
			return true;
	} while (++looked < MOST_VARIABLES && dwarf_siblingof(&entry, &entry) == 0);
	return false;
}

/* The variable at address in the function of the frame, or in one inlined into it. */
static bool local_find(struct debug *debug, const struct frame *frame,
		       const struct frame_state *state, uint64_t address, struct local *ret)
{
	struct local local = { .inlining = 0 };
	struct evaluation evaluation;
	Dwarf_Die scopes[MOST_SCOPES];
	size_t count = find_scopes(debug, frame, state, scopes, &evaluation);

	for (size_t i = 0; i < count; i++) {
		if (find_in_scope(&evaluation, &scopes[i], address, &local)) {
			*ret = local;
			return true;
		}
		local.inlining += dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine;
	}
	return false;
}

static uint32_t id_of(struct debug *debug, uint32_t thread)
{
	return debug->program->threads[thread].id;
}

/* The variable's name, and the way into it or the offset in it. */
static const char *name_variable(struct debug *debug, struct debug_module *module, uint64_t offset)
{
	struct symbol symbol;
	const char *name, *path = NULL;
	Dwarf_Die variable;

	if (!module || !symbol_tables_find_thread_local(module, offset, &symbol))
		return name_pool_print(&debug->names, "the variables+0x%" PRIx64, offset);
	name = name_demangle(&debug->names, symbol.raw);
	offset -= symbol.start;
	if (symbol.size > image_word_size(debug->image) &&
	    thread_local_variable_find(module, symbol.start, &variable))
		path = debug_path_into(debug, &variable, offset);
	if (path)
		return name_pool_print(&debug->names, "%s%s", name, path);
	if (offset == 0)
		return name;
	return name_pool_print(&debug->names, "%s+0x%" PRIx64, name, offset);
}

const char *debug_thread_local(struct debug *debug, uint64_t address)
{
	struct tls_place place;
	const char *name;

	if (!tls_find(debug, address, &place))
		return NULL;
	if (!place.module)
		return name_pool_print(&debug->names, "the %s of thread %" PRIu32,
				       place.in_table ? "dtv" : "control block",
				       id_of(debug, place.thread));
	name = name_variable(debug, debug_find_module(debug, place.module->start), place.offset);
	return name_pool_print(&debug->names, "%s of thread %" PRIu32 " (%s)",
			       name ? name : "a variable", id_of(debug, place.thread),
			       module_name(place.module));
}

/* The first frame whose stack address is in; those inlined there follow. */
static bool find_frame(const struct debug *debug, const struct backtrace *calls, uint64_t address,
		       size_t *ret)
{
	uint64_t red_zone = debug->image->arch->red_zone;

	for (size_t i = 0; i < calls->count; i++) {
		const struct frame *frame = &calls->frames[i];
		uint64_t start = frame->stack_pointer;

		/* The innermost function may use what is below it. */
		if (i == 0 && start > red_zone)
			start -= red_zone;
		if (address >= start && address < frame->end) {
			*ret = i;
			return true;
		}
	}
	return false;
}

/* Describe the address; whose names the owner of the calls, as "thread 4711". */
static const char *print_place(struct debug *debug, const struct trace *trace, const char *whose,
			       uint64_t address)
{
	const struct backtrace *calls = trace ? &trace->trace : NULL;
	const char *function;
	struct local local;
	size_t number, outer;
	bool named;

	if (!calls || !trace->states || !find_frame(debug, calls, address, &number))
		return NULL;
	for (outer = number; outer + 1 < calls->count && calls->frames[outer].inlined;)
		outer++;
	named = local_find(debug, &calls->frames[outer], &trace->states[outer], address, &local);
	if (named && local.inlining <= outer - number)
		number += local.inlining;
	else
		number = outer;
	function = debug_frame_function(debug, &calls->frames[number]);
	if (!function)
		function = "unknown code";
	if (!named)
		return name_pool_print(&debug->names, "in %s, frame %zu of %s", function, number,
				       whose);
	return name_pool_print(&debug->names, "%s %s of %s, frame %zu of %s",
			       local.parameter ? "parameter" : "variable", local.path, function,
			       number, whose);
}

static const char *name_stack_place(struct debug *debug, uint32_t thread, uint64_t address)
{
	char whose[32];

	snprintf(whose, sizeof(whose), "thread %" PRIu32, id_of(debug, thread));
	return print_place(debug, debug_trace(debug, thread), whose, address);
}

const char *debug_stack_place(struct debug *debug, uint32_t thread, uint64_t address)
{
	struct named_place *named = &debug->named[address / 8 % NAMED_PLACES];

	if (named->address != address || named->thread != thread)
		*named = (struct named_place){ address, thread,
					       name_stack_place(debug, thread, address) };
	return named->name;
}

const char *debug_saved_place(struct debug *debug, const struct frame_state *saved,
			      const char *whose, uint64_t address)
{
	return print_place(debug, debug_trace_of(debug, saved), whose, address);
}
