#include "analyzer/types/numbers.h"

#include "analyzer/base/list.h"

#include <string.h>

/* From where jumps lead to an instruction. */
enum jumped { FROM_NOWHERE, FROM_ABOVE, FROM_BELOW };

static const struct number UNKNOWN = { .is_constant = false };

static void forget_all(struct numbers *numbers)
{
	memset(numbers->registers, 0, sizeof(numbers->registers));
}

/* Keep what every way through the function leaves as it is. */
static void forget_rewritten(struct numbers *numbers)
{
	struct number kept[MOST_UNWOUND] = { 0 };

	list_for_each(described, numbers->arch->registers, numbers->arch->register_count) {
		const uint8_t in = described->unwound;

		if (in < MOST_UNWOUND && described->preserved && numbers->writes[in] <= 1)
			kept[in] = numbers->registers[in];
	}
	memcpy(numbers->registers, kept, sizeof(kept));
}

/* True if the operand is in the frame; sets its offset. */
static bool is_in_frame(const struct numbers *numbers, const cs_x86_op *operand, int64_t *ret)
{
	if (operand->type != X86_OP_MEM || !operand->mem.base || operand->mem.index ||
	    operand->mem.segment ||
	    numbers->arch->disassembled(operand->mem.base) != numbers->arch->frame_pointer)
		return false;
	*ret = operand->mem.disp;
	return true;
}

static struct frame_place *find_place(struct numbers *numbers, int64_t offset)
{
	for (size_t i = 0; i < numbers->place_count; i++)
		if (numbers->places[i].offset == offset)
			return &numbers->places[i];
	return NULL;
}

static void count_register(struct numbers *numbers, const cs_insn *instruction,
			   const cs_x86_op *operand)
{
	uint8_t in = operand->type == X86_OP_REG && operand->access & CS_AC_WRITE &&
				     instruction->id != X86_INS_POP
			     ? numbers->arch->disassembled(operand->reg)
			     : NOT_A_REGISTER;

	if (in < MOST_UNWOUND && numbers->writes[in] < UINT8_MAX)
		numbers->writes[in]++;
}

/* Count an instruction that writes a register or to the frame, or takes an address in it. */
static void count_writes(struct numbers *numbers, const cs_insn *instruction)
{
	const cs_x86 *x86 = &instruction->detail->x86;
	struct frame_place *place;
	int64_t offset;

	for (uint8_t i = 0; i < x86->op_count; i++) {
		count_register(numbers, instruction, &x86->operands[i]);
		if (!is_in_frame(numbers, &x86->operands[i], &offset) ||
		    (instruction->id != X86_INS_LEA && !(x86->operands[i].access & CS_AC_WRITE)))
			continue;
		place = find_place(numbers, offset);
		if (!place && numbers->place_count < MOST_FRAME_PLACES) {
			place = &numbers->places[numbers->place_count++];
			*place = (struct frame_place){ .offset = offset };
		}
		if (place)
			place->writes++;
	}
}

static struct error *find_targets(struct numbers *numbers, const uint8_t *code, uint64_t address,
				  size_t size)
{
	const cs_insn *instruction = disassembler_instruction(numbers->disassembler);
	uint64_t start = address;
	size_t left = size;

	TRY(array_resize(&numbers->targets, size));
	if (size)
		memset(numbers->targets.items, 0, size);
	while (disassembler_next(numbers->disassembler, &code, &left, &address)) {
		const cs_x86 *x86 = &instruction->detail->x86;
		uint64_t target = (uint64_t)x86->operands[0].imm;

		count_writes(numbers, instruction);
		if (x86->op_count != 1 || x86->operands[0].type != X86_OP_IMM ||
		    !disassembler_is(numbers->disassembler, CS_GRP_JUMP) || target - start >= size)
			continue;
		if (target < address)
			numbers->targets.items[target - start] = FROM_BELOW;
		else if (!numbers->targets.items[target - start])
			numbers->targets.items[target - start] = FROM_ABOVE;
	}
	return NULL;
}

struct error *numbers_begin(struct numbers *numbers, const uint8_t *code, uint64_t address,
			    size_t size, bool is_entry)
{
	forget_all(numbers);
	memset(numbers->arrivals, 0, sizeof(numbers->arrivals));
	numbers->start = address;
	numbers->is_unreached = numbers->has_frame = false;
	numbers->call = 0;
	memset(numbers->writes, 0, sizeof(numbers->writes));
	numbers->place_count = 0;
	for (uint8_t i = 0; is_entry && i < COUNT_OF(numbers->arch->parameters); i++)
		numbers->registers[numbers->arch->parameters[i]].parameter = (uint8_t)(i + 1);
	return find_targets(numbers, code, address, size);
}

/* The common value of two numbers that a register may hold. */
static struct number either(struct number one, struct number other)
{
	if (one.is_constant == other.is_constant && one.is_address == other.is_address &&
	    one.is_word == other.is_word && one.parameter == other.parameter &&
	    one.factor == other.factor && one.call == other.call && one.value == other.value)
		return one;
	if (one.call && other.is_constant && other.value == 0)
		return one;
	if (other.call && one.is_constant && one.value == 0)
		return other;
	if (one.parameter && other.is_constant && other.value <= 1)
		return one;
	if (other.parameter && one.is_constant && one.value <= 1)
		return other;
	return UNKNOWN;
}

static void merge(struct number *registers, const struct number *others)
{
	for (size_t i = 0; i < MOST_UNWOUND; i++)
		registers[i] = either(registers[i], others[i]);
}

static struct arrival *find_arrival(struct numbers *numbers, uint64_t address)
{
	for (size_t i = 0; i < MOST_ARRIVALS; i++)
		if (numbers->arrivals[i].address == address)
			return &numbers->arrivals[i];
	return NULL;
}

/* A jump takes what is known to its target. */
static void keep_for_target(struct numbers *numbers, const cs_x86 *x86)
{
	struct arrival *arrival;
	uint64_t target;

	if (x86->op_count != 1 || x86->operands[0].type != X86_OP_IMM ||
	    !disassembler_is(numbers->disassembler, CS_GRP_JUMP))
		return;
	target = (uint64_t)x86->operands[0].imm;
	if (target - numbers->start >= numbers->targets.count)
		return;
	arrival = find_arrival(numbers, target);
	if (arrival) {
		merge(arrival->registers, numbers->registers);
		return;
	}
	arrival = find_arrival(numbers, 0);
	if (!arrival) {
		/* There are too many: nothing is known there. */
		numbers->targets.items[target - numbers->start] = FROM_BELOW;
		return;
	}
	arrival->address = target;
	memcpy(arrival->registers, numbers->registers, sizeof(numbers->registers));
}

void numbers_arrive(struct numbers *numbers, uint64_t address)
{
	uint8_t target = numbers->targets.items[address - numbers->start];
	struct arrival *arrival = target != FROM_NOWHERE ? find_arrival(numbers, address) : NULL;

	if (arrival && numbers->is_unreached)
		memcpy(numbers->registers, arrival->registers, sizeof(numbers->registers));
	else if (arrival)
		merge(numbers->registers, arrival->registers);
	if (target == FROM_BELOW || (numbers->is_unreached && !arrival))
		forget_rewritten(numbers);
	if (arrival)
		arrival->address = 0;
	numbers->may_be_padding = numbers->is_unreached && target == FROM_NOWHERE;
	numbers->is_unreached = false;
}

static void forget_unpreserved(struct numbers *numbers)
{
	list_for_each(described, numbers->arch->registers, numbers->arch->register_count) {
		if (described->unwound < MOST_UNWOUND && !described->preserved)
			numbers->registers[described->unwound] = UNKNOWN;
	}
}

static void forget_written(struct numbers *numbers)
{
	uint8_t count;
	cs_regs list;

	if (!disassembler_written(numbers->disassembler, list, &count)) {
		forget_all(numbers);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		uint8_t in = numbers->arch->disassembled(list[i]);

		if (in < MOST_UNWOUND)
			numbers->registers[in] = UNKNOWN;
	}
}

/* The register that an operand is, of which it has at least the lower half. */
static uint8_t register_of(const struct numbers *numbers, const cs_x86_op *operand)
{
	uint8_t in = operand->type == X86_OP_REG && operand->size >= sizeof(uint32_t)
			     ? numbers->arch->disassembled(operand->reg)
			     : NOT_A_REGISTER;

	return in < MOST_UNWOUND ? in : NOT_A_REGISTER;
}

static struct number number_of(const struct numbers *numbers, const cs_x86_op *operand,
			       uint8_t size)
{
	uint8_t in = register_of(numbers, operand);

	if (operand->type == X86_OP_IMM)
		return (struct number){ .is_constant = true,
					.value = size == sizeof(uint32_t)
							 ? (uint32_t)operand->imm
							 : (uint64_t)operand->imm };
	return in != NOT_A_REGISTER ? numbers->registers[in] : UNKNOWN;
}

/* The number in the frame at the operand. */
static struct number kept_in_frame(struct numbers *numbers, const cs_x86_op *operand)
{
	int64_t offset;
	const struct frame_place *place = numbers->has_frame && operand->size >= sizeof(uint32_t) &&
							  is_in_frame(numbers, operand, &offset)
						  ? find_place(numbers, offset)
						  : NULL;

	return place && place->writes == 1 ? place->number : UNKNOWN;
}

static void keep_in_frame(struct numbers *numbers, const cs_x86_op *to, const cs_x86_op *from)
{
	int64_t offset;
	struct frame_place *place = numbers->has_frame && to->size >= sizeof(uint32_t) &&
						    is_in_frame(numbers, to, &offset)
					    ? find_place(numbers, offset)
					    : NULL;

	if (place)
		place->number = number_of(numbers, from, to->size);
}

/* The frame pointer is one from where it gets the stack pointer to where it gets anything else. */
static void follow_frame(struct numbers *numbers, const cs_insn *instruction)
{
	const cs_x86_op *to = &instruction->detail->x86.operands[0];
	uint8_t count;
	cs_regs list;

	if (instruction->id == X86_INS_MOV &&
	    register_of(numbers, to) == numbers->arch->frame_pointer) {
		numbers->has_frame =
			register_of(numbers, to + 1) == arch_unwound_stack_pointer(numbers->arch);
		return;
	}
	if (numbers->has_frame && disassembler_written(numbers->disassembler, list, &count))
		for (size_t i = 0; i < count; i++)
			numbers->has_frame &= numbers->arch->disassembled(list[i]) !=
					      numbers->arch->frame_pointer;
}

bool numbers_place(const struct numbers *numbers, const cs_x86_op *operand, uint64_t *ret)
{
	const cs_insn *instruction = disassembler_instruction(numbers->disassembler);
	uint8_t base = operand->type == X86_OP_MEM && operand->mem.base
			       ? numbers->arch->disassembled(operand->mem.base)
			       : NOT_A_REGISTER;

	if (base == NOT_A_REGISTER || operand->mem.index || operand->mem.segment)
		return false;
	if (base == numbers->arch->unwound_return)
		*ret = instruction->address + instruction->size + (uint64_t)operand->mem.disp;
	else if (base < MOST_UNWOUND && numbers->registers[base].is_address)
		*ret = numbers->registers[base].value + (uint64_t)operand->mem.disp;
	else
		return false;
	return true;
}

/* The sum of a parameter or a call's result, and a constant. */
static struct number sum(struct number number, int64_t more)
{
	number.value += (uint64_t)more;
	return number.parameter || number.call ? number : UNKNOWN;
}

/* The product of two parameters. */
static struct number product(struct number one, struct number other)
{
	if (!one.parameter || one.factor || one.value || !other.parameter || other.factor ||
	    other.value)
		return UNKNOWN;
	one.factor = other.parameter;
	return one;
}

/* The sum of a register and a constant, as lea makes it. */
static struct number moved(const struct numbers *numbers, const cs_x86_op *from)
{
	uint8_t base = from->mem.base && !from->mem.index && !from->mem.segment
			       ? numbers->arch->disassembled(from->mem.base)
			       : NOT_A_REGISTER;

	return base < MOST_UNWOUND ? sum(numbers->registers[base], from->mem.disp) : UNKNOWN;
}

/* The word loaded from memory or, for lea, its address. */
static struct number loaded(struct numbers *numbers, unsigned int instruction,
			    const cs_x86_op *from)
{
	struct number number = { .is_address = instruction == X86_INS_LEA,
				 .is_word = instruction != X86_INS_LEA };

	if (number.is_word && from->size != sizeof(uint64_t))
		return kept_in_frame(numbers, from);
	if (numbers_place(numbers, from, &number.value))
		return number;
	return number.is_word ? kept_in_frame(numbers, from) : moved(numbers, from);
}

/* A number that is extended with its sign; a parameter stays what it is. */
static struct number extended(struct number number)
{
	if (number.is_constant)
		number.value = (uint64_t)(int64_t)(int32_t)number.value;
	return number.is_constant || number.parameter ? number : UNKNOWN;
}

/* The value of the first operand after an instruction with two. */
static struct number result_of(struct numbers *numbers, unsigned int instruction,
			       const cs_x86_op *to, const cs_x86_op *from)
{
	switch (instruction) {
	case X86_INS_XOR:
		return from->type == X86_OP_REG && to->reg == from->reg
			       ? (struct number){ .is_constant = true }
			       : UNKNOWN;
	case X86_INS_MOV:
	case X86_INS_MOVABS:
		return from->type == X86_OP_MEM ? loaded(numbers, instruction, from)
						: number_of(numbers, from, to->size);
	case X86_INS_LEA:
		return loaded(numbers, instruction, from);
	case X86_INS_MOVSXD:
		return extended(from->type == X86_OP_MEM ? kept_in_frame(numbers, from)
							 : number_of(numbers, from, from->size));
	case X86_INS_ADD:
		return from->type == X86_OP_IMM ? sum(number_of(numbers, to, to->size), from->imm)
						: UNKNOWN;
	case X86_INS_SUB:
		return from->type == X86_OP_IMM ? sum(number_of(numbers, to, to->size), -from->imm)
						: UNKNOWN;
	case X86_INS_IMUL:
		return product(number_of(numbers, to, to->size),
			       from->type == X86_OP_MEM ? kept_in_frame(numbers, from)
							: number_of(numbers, from, to->size));
	case X86_INS_CMOVA:
	case X86_INS_CMOVAE:
	case X86_INS_CMOVB:
	case X86_INS_CMOVBE:
	case X86_INS_CMOVE:
	case X86_INS_CMOVNE:
		return either(number_of(numbers, to, to->size), number_of(numbers, from, to->size));
	default:
		return UNKNOWN;
	}
}

void numbers_read(struct numbers *numbers)
{
	const cs_insn *instruction = disassembler_instruction(numbers->disassembler);
	const cs_x86 *x86 = &instruction->detail->x86;
	const cs_x86_op *to = &x86->operands[0];
	uint8_t in = x86->op_count == 2 ? register_of(numbers, to) : NOT_A_REGISTER;
	struct number number;

	keep_for_target(numbers, x86);
	switch (instruction->id) {
	case X86_INS_CALL:
		forget_unpreserved(numbers);
		numbers->registers[numbers->arch->result] =
			(struct number){ .call = numbers->call };
		return;
	case X86_INS_JMP:
	case X86_INS_RET:
		numbers->is_unreached = true;
		return;
	case X86_INS_NOP:
		numbers->is_unreached = numbers->may_be_padding;
		return;
	case X86_INS_CMP:
	case X86_INS_TEST:
		return;
	case X86_INS_MUL:
		number = product(numbers->registers[numbers->arch->result],
				 number_of(numbers, to, to->size));
		forget_written(numbers);
		numbers->registers[numbers->arch->result] = number;
		return;
	case X86_INS_CDQE:
		numbers->registers[numbers->arch->result] =
			extended(numbers->registers[numbers->arch->result]);
		return;
	default:
		break;
	}
	if (instruction->id == X86_INS_MOV)
		keep_in_frame(numbers, to, to + 1);
	follow_frame(numbers, instruction);
	number = in != NOT_A_REGISTER ? result_of(numbers, instruction->id, to, to + 1) : UNKNOWN;
	forget_written(numbers);
	if (in != NOT_A_REGISTER)
		numbers->registers[in] = number;
}
