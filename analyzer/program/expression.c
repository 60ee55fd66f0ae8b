#include "analyzer/program/expression.h"

#include <dwarf.h>

enum { MOST_OPERANDS = 16 };

struct machine {
	const struct expression_context *context;
	uint64_t operands[MOST_OPERANDS];
	size_t count;
};

static bool push(struct machine *machine, uint64_t value)
{
	if (machine->count == MOST_OPERANDS)
		return false;
	machine->operands[machine->count++] = value;
	return true;
}

static bool push_register(struct machine *machine, uint64_t number, uint64_t offset)
{
	const struct expression_context *context = machine->context;

	return number < MOST_UNWOUND && context->known >> number & 1 &&
	       push(machine, context->registers[number] + offset);
}

static bool push_base(struct machine *machine, uint64_t offset)
{
	const struct expression_context *context = machine->context;
	uint64_t base;

	return context->base && context->base(context->data, &base) && push(machine, base + offset);
}

/* Replace the two operands on top by what the operation makes of them. */
static bool combine(struct machine *machine, uint8_t atom)
{
	uint64_t *operands = machine->operands, top;

	if (machine->count < 2)
		return false;
	top = operands[--machine->count];
	if (atom == DW_OP_plus)
		operands[machine->count - 1] += top;
	else if (atom == DW_OP_minus)
		operands[machine->count - 1] -= top;
	else
		operands[machine->count - 1] &= top;
	return true;
}

static bool dereference(struct machine *machine)
{
	uint64_t *top;

	if (machine->count == 0)
		return false;
	top = &machine->operands[machine->count - 1];
	return image_read_word(machine->context->image, *top, top);
}

static bool execute(struct machine *machine, const Dwarf_Op *operation)
{
	const struct expression_context *context = machine->context;
	uint8_t atom = operation->atom;

	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		return push_register(machine, atom - DW_OP_breg0, operation->number);
	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31)
		return push(machine, atom - DW_OP_lit0);
	if (context->is_base && atom >= DW_OP_reg0 && atom <= DW_OP_reg31)
		return push_register(machine, atom - DW_OP_reg0, 0);
	switch (atom) {
	case DW_OP_bregx:
		return push_register(machine, operation->number, operation->number2);
	case DW_OP_fbreg:
		return push_base(machine, operation->number);
	case DW_OP_call_frame_cfa:
		return context->frame_address && push(machine, context->frame_address);
	case DW_OP_const1u ... DW_OP_consts:
		return push(machine, operation->number);
	case DW_OP_plus_uconst:
		return push(machine, operation->number) && combine(machine, DW_OP_plus);
	case DW_OP_plus:
	case DW_OP_minus:
	case DW_OP_and:
		return combine(machine, atom);
	case DW_OP_deref:
		return dereference(machine);
	default:
		return false;
	}
}

bool expression_evaluate(const struct expression_context *context, const Dwarf_Op *operations,
			 size_t count, uint64_t *ret)
{
	struct machine machine = { .context = context };

	for (size_t i = 0; i < count; i++)
		if (!execute(&machine, &operations[i]))
			return false;
	if (machine.count == 0)
		return false;
	*ret = machine.operands[machine.count - 1];
	if (image_word_size(context->image) == sizeof(uint32_t))
		*ret = (uint32_t)*ret;
	return true;
}
