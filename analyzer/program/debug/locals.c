/*
 * Where in a thread an address is, in words: which variable of which call, or which thread-local
 * one.
 */
#include "analyzer/program/debug/debug_parts.h"

#include <dwarf.h>
#include <inttypes.h>

enum { MOST_OPERANDS = 16, MOST_VARIABLES = 4096 };

/* A variable found, the way into it included. */
struct local {
	const char *path; /* as "session.user" */
	bool parameter;
	size_t inlining; /* how many of the functions inlined there are within */
};

/* What locations are computed from. */
struct evaluation {
	struct debug *debug;
	const struct frame_state *state;
	uint64_t frame_end; /* the canonical frame address; 0: not known */
	uint64_t address;   /* of the code, less the bias */
	Dwarf_Die *function;
	bool in_base; /* computing the frame base, which has none itself */
	uint64_t operands[MOST_OPERANDS];
	size_t count;
};

static bool push(struct evaluation *evaluation, uint64_t value)
{
	if (evaluation->count == MOST_OPERANDS)
		return false;
	evaluation->operands[evaluation->count++] = value;
	return true;
}

static bool push_register(struct evaluation *evaluation, uint64_t number, uint64_t offset)
{
	const struct frame_state *state = evaluation->state;

	return number < MOST_UNWOUND && state->known >> number & 1 &&
	       push(evaluation, state->registers[number] + offset);
}

static bool evaluate(struct evaluation *evaluation, Dwarf_Attribute *attribute, uint64_t *ret);

static bool push_base(struct evaluation *evaluation, uint64_t offset)
{
	struct evaluation inner = *evaluation;
	Dwarf_Attribute attribute;
	uint64_t base;

	if (evaluation->in_base ||
	    !dwarf_attr_integrate(evaluation->function, DW_AT_frame_base, &attribute))
		return false;
	inner.in_base = true;
	inner.count = 0;
	return evaluate(&inner, &attribute, &base) && push(evaluation, base + offset);
}

/* Replace the two operands on top by what the operation makes of them. */
static bool combine(struct evaluation *evaluation, uint8_t atom)
{
	uint64_t *operands = evaluation->operands, top;

	if (evaluation->count < 2)
		return false;
	top = operands[--evaluation->count];
	if (atom == DW_OP_plus)
		operands[evaluation->count - 1] += top;
	else if (atom == DW_OP_minus)
		operands[evaluation->count - 1] -= top;
	else
		operands[evaluation->count - 1] &= top;
	return true;
}

static bool dereference(struct evaluation *evaluation)
{
	uint64_t *top = &evaluation->operands[evaluation->count - 1];

	return evaluation->count > 0 && image_read_u64(evaluation->debug->image, *top, top);
}

/* What is not in memory, or in pieces, is not to be found by its address. */
static bool execute(struct evaluation *evaluation, const Dwarf_Op *operation)
{
	uint8_t atom = operation->atom;

	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		return push_register(evaluation, atom - DW_OP_breg0, operation->number);
	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31)
		return push(evaluation, atom - DW_OP_lit0);
	/* A frame base may be said to be in a register: then it is its value */
	if (evaluation->in_base && atom >= DW_OP_reg0 && atom <= DW_OP_reg31)
		return push_register(evaluation, atom - DW_OP_reg0, 0);
	switch (atom) {
	case DW_OP_fbreg:
		return push_base(evaluation, operation->number);
	case DW_OP_call_frame_cfa:
		return evaluation->frame_end && push(evaluation, evaluation->frame_end);
	case DW_OP_const1u ... DW_OP_consts:
		return push(evaluation, operation->number);
	case DW_OP_plus_uconst:
		return push(evaluation, operation->number) && combine(evaluation, DW_OP_plus);
	case DW_OP_plus:
	case DW_OP_minus:
	case DW_OP_and:
		return combine(evaluation, atom);
	case DW_OP_deref:
		return dereference(evaluation);
	default:
		return false;
	}
}

static bool evaluate(struct evaluation *evaluation, Dwarf_Attribute *attribute, uint64_t *ret)
{
	Dwarf_Op *operations;
	size_t count;

	if (dwarf_getlocation_addr(attribute, evaluation->address, &operations, &count, 1) != 1)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!execute(evaluation, &operations[i]))
			return false;
	if (evaluation->count == 0)
		return false;
	*ret = evaluation->operands[evaluation->count - 1];
	return true;
}

/* The way into the variable to the address, if it covers that. */
static const char *cover(struct evaluation *evaluation, Dwarf_Die *variable, uint64_t address)
{
	struct type_path path = { .used = 0 };
	Dwarf_Attribute attribute;
	const char *name;
	Dwarf_Word size = 0;
	Dwarf_Die type;
	uint64_t start;

	evaluation->count = 0;
	if (!dwarf_attr_integrate(variable, DW_AT_location, &attribute) ||
	    !evaluate(evaluation, &attribute, &start) || start > address ||
	    !entry_type(variable, &type))
		return NULL;
	/* Of an array whose size was computed, the start is all there is. */
	if (dwarf_aggregate_size(&type, &size) != 0)
		size = 1;
	name = debug_entry_name(evaluation->debug, variable);
	if (address - start >= size || !name)
		return NULL;
	type_path_add(&path, &type, address - start);
	return name_pool_print(&evaluation->debug->names, "%s%s", name, path.text);
}

static bool find_in_scope(struct evaluation *evaluation, Dwarf_Die *scope, uint64_t address,
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
	struct evaluation evaluation = {
		.debug = debug,
		.state = state,
		.frame_end = frame->end,
	};
	struct local local = { .inlining = 0 };
	Dwarf_Die scopes[MOST_SCOPES];
	struct code_place place;
	size_t count;

	if (!code_place_find(debug, state->address, &place))
		return false;
	count = code_scopes(&place, scopes);
	if (count == 0)
		return false;
	evaluation.address = place.address;
	evaluation.function = &scopes[count - 1];
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
	return program_thread(debug->program, thread)->id;
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
	if (symbol.size > 8 && thread_local_variable_find(module, symbol.start, &variable))
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
	uint64_t red_zone = image_arch(debug->image)->red_zone;

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

/* Whose the calls are: "thread 4711". */
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
