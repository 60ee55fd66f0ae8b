#include "analyzer/program/debug/functions.h"

#include "analyzer/base/array.h"
#include "analyzer/base/budget.h"
#include "analyzer/program/debug/debug_parts.h"
#include "analyzer/program/debug/type_reader.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

/* No function has as many; a file may say so. */
enum {
	DEEPEST = 48,
	MOST_LOCALS = 1 << 16, /* of a function */
	MOST_RANGES = 1 << 12, /* of a variable, or a function */
	MOST_STEPS = 1 << 27,  /* from entry to entry */
};

struct walk {
	struct debug *debug;
	const struct type_table *table;
	bool wants_locals;
	function_visit visit;
	void *data;
	uint64_t bias;
	struct budget steps;
	bool ended; /* by the visit */
	ARRAY(struct function_local) locals;
	/* The current function's base of DW_OP_fbreg, and whether it is known. */
	int64_t frame_base;
	bool has_frame_base;
};

static bool go_on(struct walk *walk, Dwarf_Die *entry)
{
	uint64_t before = (uint64_t)(uintptr_t)entry->addr;

	return budget_take(&walk->steps) && dwarf_siblingof(entry, entry) == 0 &&
	       (uint64_t)(uintptr_t)entry->addr > before;
}

static type_number type_of_variable(const struct walk *walk, Dwarf_Die *entry)
{
	Dwarf_Die type;

	return entry_type(entry, &type) ? type_of_entry(walk->table, type.addr) : NO_TYPE;
}

/* A register as a whole, or a place in the frame. */
static bool find_place(const struct walk *walk, const Dwarf_Op *operations, size_t count,
		       struct function_local *local)
{
	if (count != 1)
		return false;
	if (operations->atom >= DW_OP_reg0 && operations->atom <= DW_OP_reg31) {
		local->in = (uint8_t)(operations->atom - DW_OP_reg0);
		return true;
	}
	if (operations->atom != DW_OP_fbreg || !walk->has_frame_base)
		return false;
	local->in = NOT_A_REGISTER;
	return !__builtin_add_overflow(walk->frame_base, (int64_t)operations->number,
				       &local->offset);
}

static struct error *read_local(struct walk *walk, Dwarf_Die *entry)
{
	struct function_local local = { .type = type_of_variable(walk, entry) };
	Dwarf_Addr base, start, end;
	struct error *error = NULL;
	Dwarf_Attribute attribute;
	Dwarf_Op *operations;
	ptrdiff_t at = 0;
	size_t count;

	if (local.type == NO_TYPE || !dwarf_attr_integrate(entry, DW_AT_location, &attribute))
		return NULL;
	for (size_t i = 0; !error && i < MOST_RANGES && walk->locals.count < MOST_LOCALS; i++) {
		at = dwarf_getlocations(&attribute, at, &base, &start, &end, &operations, &count);
		if (at <= 0)
			break;
		if (!find_place(walk, operations, count, &local))
			continue;
		/* One that is the same all over the function has no addresses. */
		local.start = start == 0 ? 0 : start + walk->bias;
		local.end = end == UINT64_MAX ? end : end + walk->bias;
		error = array_append(&walk->locals, local);
	}
	return error;
}

static struct error *read_scope(struct walk *walk, Dwarf_Die *scope, struct function *function,
				size_t depth)
{
	bool is_function = depth == 0;
	struct error *error = NULL;
	Dwarf_Die entry;

	if (depth == DEEPEST || dwarf_child(scope, &entry) != 0)
		return NULL;
	do {
		switch (dwarf_tag(&entry)) {
		case DW_TAG_formal_parameter:
			if (is_function && function->parameter_count < MOST_PARAMETERS)
				function->parameters[function->parameter_count++] =
					type_of_variable(walk, &entry);
			__attribute__((fallthrough));
		case DW_TAG_variable:
			if (walk->wants_locals)
				error = read_local(walk, &entry);
			break;
		case DW_TAG_lexical_block:
		case DW_TAG_inlined_subroutine:
			if (walk->wants_locals)
				error = read_scope(walk, &entry, function, depth + 1);
			break;
		default:
			break;
		}
	} while (!error && go_on(walk, &entry));
	return error;
}

/* The canonical frame address itself, or the register that is 16 bytes below it. */
static void read_frame_base(struct walk *walk, Dwarf_Die *function)
{
	uint8_t frame_pointer = walk->debug->image->arch->frame_pointer;
	Dwarf_Attribute attribute;
	Dwarf_Op *operations;
	size_t count;

	walk->has_frame_base = false;
	if (!dwarf_attr_integrate(function, DW_AT_frame_base, &attribute) ||
	    dwarf_getlocation(&attribute, &operations, &count) != 0 || count != 1)
		return;
	walk->frame_base = 0;
	if (operations->atom == DW_OP_call_frame_cfa) {
		walk->has_frame_base = true;
	} else if (operations->atom == DW_OP_reg0 + frame_pointer) {
		walk->frame_base = -(int64_t)walk->debug->image->arch->frame_pointer_depth;
		walk->has_frame_base = true;
	}
}

DEFINE_COMPARE(compare_locals, struct function_local, ASCENDING(start), ASCENDING(end))

/* True if the function belongs to the C++ library, which allocates for its callers. */
static bool is_of_standard_library(Dwarf_Die *function)
{
	Dwarf_Attribute attribute;
	const char *name = dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute)
				   ? dwarf_formstring(&attribute)
				   : NULL;

	return name && name_is_of_library(name);
}

static struct error *read_function(struct walk *walk, Dwarf_Die *entry)
{
	struct function function = { .result = type_of_variable(walk, entry),
				     .is_of_library = is_of_standard_library(entry) };
	Dwarf_Addr base = 0, start, end;
	ptrdiff_t at = 0;

	if (dwarf_lowpc(entry, &start) != 0 && !dwarf_hasattr(entry, DW_AT_ranges))
		return NULL;
	walk->locals.count = 0;
	read_frame_base(walk, entry);
	TRY(read_scope(walk, entry, &function, 0));
	array_sort(&walk->locals, compare_locals);
	function.locals = walk->locals.items;
	function.local_count = walk->locals.count;
	for (size_t i = 0; !walk->ended && i < MOST_RANGES; i++) {
		at = dwarf_ranges(entry, at, &base, &start, &end);
		if (at <= 0)
			break;
		function.start = start + walk->bias;
		function.end = end + walk->bias;
		if (i == 0)
			function.entry = function.start;
		if (end > start)
			walk->ended = !walk->visit(walk->data, &function);
	}
	return NULL;
}

static struct error *read_entries(struct walk *walk, Dwarf_Die *parent, size_t depth)
{
	struct error *error = NULL;
	Dwarf_Die entry;

	if (depth == DEEPEST || dwarf_child(parent, &entry) != 0)
		return NULL;
	do {
		switch (dwarf_tag(&entry)) {
		case DW_TAG_subprogram:
			error = read_function(walk, &entry);
			break;
		case DW_TAG_namespace:
		case DW_TAG_module:
			error = read_entries(walk, &entry, depth + 1);
			break;
		default:
			break;
		}
	} while (!error && !walk->ended && go_on(walk, &entry));
	return error;
}

static struct error *read_units(struct walk *walk, const struct debug_module *module, Dwarf *dwarf)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;

	while (!walk->ended && dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0) {
		debug_enter_split(module, &die);
		TRY(read_entries(walk, &die, 0));
	}
	return NULL;
}

struct error *debug_visit_functions(struct debug *debug, const struct type_table *table,
				    struct memory_account *account, bool wants_locals,
				    function_visit visit, void *data)
{
	struct walk walk = {
		.steps = { MOST_STEPS },
		.debug = debug,
		.table = table,
		.wants_locals = wants_locals,
		.visit = visit,
		.data = data,
		.locals.memory.account = account,
	};
	struct error *error = NULL;

	for (size_t i = 0; !error && !walk.ended && i < debug->program->module_count; i++) {
		struct debug_module *module = debug_typed_module(debug, i);
		Dwarf *dwarf = module ? debug_module_dwarf(module, &walk.bias) : NULL;

		if (dwarf)
			error = read_units(&walk, module, dwarf);
	}
	array_release(&walk.locals);
	return error;
}

bool debug_has_functions(struct debug *debug, size_t module)
{
	struct debug_module *typed = debug_typed_module(debug, module);
	uint64_t bias;

	return typed && debug_module_dwarf(typed, &bias);
}

/* True if a variable, or a function's result, points to the type, which is known. */
static bool points_to(const struct type_table *table, Dwarf_Die *entry, type_number pointee)
{
	Dwarf_Die type;
	const struct data_type *found;

	if (!entry_type(entry, &type))
		return false;
	found = type_get(table, type_of_entry(table, type.addr));
	return pointee != NO_TYPE && found->kind == TYPE_POINTER && found->target == pointee;
}

static bool returns_bytes(const struct type_table *table, Dwarf_Die *function)
{
	Dwarf_Die type;
	const struct data_type *found;
	enum type_kind target;

	if (!entry_type(function, &type))
		return false;
	found = type_get(table, type_of_entry(table, type.addr));
	target = type_get(table, found->target)->kind;
	return found->kind == TYPE_POINTER && (target == TYPE_NONE || target == TYPE_CHARACTER);
}

/* True if the scope has such a variable, not counting functions inlined into it. */
static bool has_pointer(struct walk *walk, Dwarf_Die *scope, type_number pointee, size_t depth)
{
	Dwarf_Die entry;

	if (depth == DEEPEST || dwarf_child(scope, &entry) != 0)
		return false;
	do {
		switch (dwarf_tag(&entry)) {
		case DW_TAG_formal_parameter:
		case DW_TAG_variable:
			if (points_to(walk->table, &entry, pointee))
				return true;
			break;
		case DW_TAG_lexical_block:
			if (has_pointer(walk, &entry, pointee, depth + 1))
				return true;
			break;
		default:
			break;
		}
	} while (go_on(walk, &entry));
	return false;
}

static const char *short_source(struct debug *debug, const struct source_line *line)
{
	const char *text = line->file ? source_line_text(debug, line) : NULL;
	const char *slash = text ? strrchr(text, '/') : NULL;

	return slash ? slash + 1 : text;
}

/* The result type if the function is the allocate() of a standard allocator; else NO_TYPE. */
static type_number allocated_by(struct debug *debug, const struct type_table *table,
				Dwarf_Die *function)
{
	const char *name = debug_entry_name(debug, function);
	const struct data_type *result;
	Dwarf_Die type;

	if (!name || !strstr(name, "::allocate(") || !name_is_of_library(name) ||
	    !entry_type(function, &type))
		return NO_TYPE;
	result = type_get(table, type_of_entry(table, type.addr));
	return result->kind == TYPE_POINTER ? result->target : NO_TYPE;
}

bool debug_find_function(struct debug *debug, const struct type_table *table, uint64_t address,
			 type_number pointee, struct code_function *ret)
{
	struct walk walk = { .debug = debug, .table = table, .steps = { MOST_STEPS } };
	Dwarf_Die scopes[MOST_SCOPES];
	struct source_line line = { 0 };
	type_number allocated = NO_TYPE;
	struct code_place place;
	bool is_found = false;
	size_t count;

	*ret = (struct code_function){ NULL };
	if (!code_place_find(debug, address, &place))
		return false;
	if (!source_line_find(&place.lines, place.address, &line))
		line = (struct source_line){ 0 };
	count = code_scopes(&place, scopes);
	for (size_t i = 0; i < count; i++) {
		bool is_inlined = dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine;
		bool is_library, names_it;

		if (!is_inlined && dwarf_tag(&scopes[i]) != DW_TAG_subprogram)
			continue;
		if (allocated == NO_TYPE)
			allocated = allocated_by(debug, table, &scopes[i]);
		is_library = is_of_standard_library(&scopes[i]);
		names_it = !is_library && (points_to(table, &scopes[i], pointee) ||
					   has_pointer(&walk, &scopes[i], pointee, 0));
		if (names_it || (!is_found && !is_library &&
				 (!is_inlined || !returns_bytes(table, &scopes[i])))) {
			ret->name = debug_entry_name(debug, &scopes[i]);
			ret->source = short_source(debug, &line);
			is_found = true;
		}
		if (names_it || !is_inlined || !inlined_call_find(&place, &scopes[i], &line))
			break;
	}
	ret->allocated = allocated;
	return ret->name || allocated != NO_TYPE;
}

type_number debug_vtable_type(struct debug *debug, const struct type_table *table, uint64_t address)
{
	struct debug_module *module = debug_find_module(debug, address);
	Dwarf_Die variable, type, containing;
	Dwarf_Attribute attribute;
	uint64_t bias;

	if (!module || !debug_module_dwarf(module, &bias) ||
	    !static_variable_find(module, address - bias, &variable) ||
	    !entry_type(&variable, &type) ||
	    !dwarf_attr(&type, DW_AT_containing_type, &attribute) ||
	    !dwarf_formref_die(&attribute, &containing))
		return NO_TYPE;
	return type_of_entry(table, containing.addr);
}

/* Move from a function's definition to its declaration. */
static void find_declaration(Dwarf_Die *function)
{
	static const unsigned int names[] = { DW_AT_abstract_origin, DW_AT_specification };

	for (size_t i = 0; i < COUNT_OF(names); i++) {
		Dwarf_Attribute attribute;
		Dwarf_Die next;

		if (dwarf_attr(function, names[i], &attribute) &&
		    dwarf_formref_die(&attribute, &next))
			*function = next;
	}
}

static type_number find_class_argument(const struct type_table *table, Dwarf_Die *class,
				       const char *argument)
{
	struct walk walk = { .table = table, .steps = { MOST_STEPS } };
	Dwarf_Die child, type;

	if (dwarf_child(class, &child) != 0)
		return NO_TYPE;
	do {
		const char *name = dwarf_tag(&child) == DW_TAG_template_type_parameter
					   ? dwarf_diename(&child)
					   : NULL;

		if (name && strcmp(name, argument) == 0)
			return entry_type(&child, &type) ? type_of_entry(table, type.addr)
							 : NO_TYPE;
	} while (go_on(&walk, &child));
	return NO_TYPE;
}

/* The class that the function at the address is a member of, if its name begins so. */
static bool find_class(struct debug *debug, uint64_t address, const char *class, Dwarf_Die *ret)
{
	Dwarf_Die scopes[MOST_SCOPES], function, *around = NULL;
	struct code_place place;
	const char *name;
	size_t count;
	int depth;

	if (!code_place_find(debug, address, &place))
		return false;
	count = code_scopes(&place, scopes);
	if (count == 0 || dwarf_tag(&scopes[count - 1]) != DW_TAG_subprogram)
		return false;
	function = scopes[count - 1];
	find_declaration(&function);
	depth = dwarf_getscopes_die(&function, &around);
	name = depth > 1 ? dwarf_diename(&around[1]) : NULL;
	if (name)
		*ret = around[1];
	free(around);
	return name && strncmp(name, class, strlen(class)) == 0;
}

type_number debug_class_argument(struct debug *debug, const struct type_table *table,
				 uint64_t address, const char *class, const char *argument)
{
	Dwarf_Die found;

	return find_class(debug, address, class, &found)
		       ? find_class_argument(table, &found, argument)
		       : NO_TYPE;
}

type_number debug_class_of(struct debug *debug, const struct type_table *table, uint64_t address,
			   const char *class)
{
	Dwarf_Die found;

	return find_class(debug, address, class, &found) ? type_of_entry(table, found.addr)
							 : NO_TYPE;
}
