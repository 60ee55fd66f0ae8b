#include "analyzer/program/debug/locals.h"

#include "analyzer/program/debug/types.h"

#include <dwarf.h>

enum { MOST_OPERANDS = 16, MOST_VARIABLES = 4096 };

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

bool local_find(struct debug *debug, const struct frame *frame, const struct frame_state *state,
		uint64_t address, struct local *ret)
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
