#include "analyzer/classify/crystal/code.h"

#include "analyzer/classify/crystal/disassembler.h"
#include <string.h>

enum {
	GENERAL = 16,	/* general registers come first, */
	REGISTERS = 32, /* then vector registers */
	NO_REGISTER = REGISTERS,
	STACK_POINTER = 4,
	FRAME_POINTER = 5,
	RESULT = 0,   /* rax */
	ARGUMENT = 7, /* rdi */
	SLOTS = 64,
	MOST_TARGETS = 4096,
	LONGEST_FUNCTION = 1 << 20,
};

enum value_kind { UNKNOWN, NUMBER, MADE };

/* A number, or which of the objects made. */
struct value {
	enum value_kind kind;
	uint64_t number;
};

/* A place of the stack. */
struct slot {
	int64_t place; /* from the stack pointer at the function's start */
	bool by_frame; /* from the frame pointer */
	struct value value;
};

struct code_reader {
	const struct image *image;
	bool (*allocates)(const void *data, uint64_t function);
	const void *data;
	struct disassembler *disassembler;
	const cs_insn *instruction;	/* the disassembler's */
	uint64_t targets[MOST_TARGETS]; /* of jumps within the function */
	size_t target_count;
	struct made_object made[MOST_MADE];
	size_t made_count;
	struct value registers[REGISTERS];
	struct slot slots[SLOTS];
	size_t slot_count;
	int64_t depth; /* of the stack pointer */
};

struct error *code_reader_create(const struct image *image,
				 bool (*allocates)(const void *data,
						   uint64_t function),
				 const void *data, struct code_reader **ret)
{
	_cleanup_(code_reader_destroy) struct code_reader *reader =
		calloc(1, sizeof(*reader));
	struct error *error;

	if (!reader)
		return &error_no_memory;
	reader->image = image;
	reader->allocates = allocates;
	reader->data = data;
	error = disassembler_create(&reader->disassembler);
	if (error)
		return error;
	reader->instruction = disassembler_instruction(reader->disassembler);
	*ret = take(reader);
	return NULL;
}

void code_reader_destroy(struct code_reader *reader)
{
	if (reader->disassembler)
		disassembler_destroy(reader->disassembler);
	free(reader);
}

/* Capstone's name of a register, of any width, as a number of ours. */
static unsigned int register_number(unsigned int name)
{
	static const unsigned int names[][4] = {
		{ X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL },
		{ X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL },
		{ X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL },
		{ X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL },
		{ X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL },
		{ X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL },
		{ X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL },
		{ X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL },
		{ X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B },
		{ X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B },
		{ X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B },
		{ X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B },
		{ X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B },
		{ X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B },
		{ X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B },
		{ X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B },
	};

	if (name >= X86_REG_XMM0 && name <= X86_REG_XMM15)
		return GENERAL + (name - X86_REG_XMM0);
	for (unsigned int i = 0; i < GENERAL; i++)
		for (unsigned int j = 0; j < 4; j++)
			if (names[i][j] == name)
				return i;
	/* The second bytes of four registers. */
	switch (name) {
	case X86_REG_AH:
		return 0;
	case X86_REG_CH:
		return 1;
	case X86_REG_DH:
		return 2;
	case X86_REG_BH:
		return 3;
	default:
		return NO_REGISTER;
	}
}

static void forget_all(struct code_reader *reader)
{
	memset(reader->registers, 0, sizeof(reader->registers));
	reader->slot_count = 0;
}

/* What a call does not preserve. */
static void forget_volatile(struct code_reader *reader)
{
	static const unsigned int kept[] = { 3, 4, 5, 12, 13, 14, 15 };
	struct value values[REGISTERS] = { 0 };

	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		values[kept[i]] = reader->registers[kept[i]];
	memcpy(reader->registers, values, sizeof(values));
}

/* Whether the operand is a place of the stack. */
static bool find_place(const struct code_reader *reader,
		       const cs_x86_op *operand, struct slot *ret)
{
	unsigned int base;

	if (operand->type != X86_OP_MEM ||
	    operand->mem.index != X86_REG_INVALID ||
	    operand->mem.segment != X86_REG_INVALID)
		return false;
	base = register_number(operand->mem.base);
	if (base != STACK_POINTER && base != FRAME_POINTER)
		return false;
	ret->by_frame = base == FRAME_POINTER;
	ret->place = operand->mem.disp + (ret->by_frame ? 0 : reader->depth);
	return true;
}

static struct slot *find_slot(struct code_reader *reader,
			      const struct slot *place)
{
	for (size_t i = 0; i < reader->slot_count; i++)
		if (reader->slots[i].place == place->place &&
		    reader->slots[i].by_frame == place->by_frame)
			return &reader->slots[i];
	return NULL;
}

static void set_slot(struct code_reader *reader, const struct slot *place,
		     struct value value)
{
	struct slot *slot = find_slot(reader, place);

	if (!slot && value.kind == UNKNOWN)
		return;
	if (!slot) {
		if (reader->slot_count == SLOTS)
			reader->slot_count = 0;
		slot = &reader->slots[reader->slot_count++];
		*slot = *place;
	}
	slot->value = value;
}

/* The address that the operand of memory means, if that is known. */
static bool find_address(const struct code_reader *reader,
			 const cs_x86_op *operand, uint64_t *ret)
{
	const cs_insn *instruction = reader->instruction;
	unsigned int base;

	if (operand->type != X86_OP_MEM ||
	    operand->mem.index != X86_REG_INVALID ||
	    operand->mem.segment != X86_REG_INVALID)
		return false;
	if (operand->mem.base == X86_REG_RIP) {
		*ret = instruction->address + instruction->size +
		       (uint64_t)operand->mem.disp;
		return true;
	}
	base = register_number(operand->mem.base);
	if (base == NO_REGISTER || reader->registers[base].kind != NUMBER)
		return false;
	*ret = reader->registers[base].number + (uint64_t)operand->mem.disp;
	return true;
}

/* A constant of the program. */
static struct value read_constant(const struct code_reader *reader,
				  uint64_t address, unsigned int size)
{
	const struct region *region = image_find(reader->image, address);
	struct value value = { NUMBER, 0 };

	if (size > sizeof(value.number))
		size = sizeof(value.number);
	if (!region || (region->rights & RIGHT_WRITE) ||
	    !image_read(reader->image, address, &value.number, size))
		return (struct value){ UNKNOWN, 0 };
	return value;
}

static struct value read_operand(struct code_reader *reader,
				 const cs_x86_op *operand)
{
	const struct value unknown = { UNKNOWN, 0 };
	struct slot place = { 0 };
	const struct slot *slot;
	unsigned int number;
	uint64_t address;

	switch (operand->type) {
	case X86_OP_IMM:
		return (struct value){ NUMBER, (uint64_t)operand->imm };
	case X86_OP_REG:
		number = register_number(operand->reg);
		if (number == NO_REGISTER || operand->size < 4)
			return unknown;
		return reader->registers[number];
	case X86_OP_MEM:
		if (find_place(reader, operand, &place)) {
			slot = find_slot(reader, &place);
			return slot ? slot->value : unknown;
		}
		if (find_address(reader, operand, &address))
			return read_constant(reader, address, operand->size);
		return unknown;
	default:
		return unknown;
	}
}

/* Which object the operand is the start of, or NULL. */
static struct made_object *find_made(struct code_reader *reader,
				     const cs_x86_op *operand)
{
	const struct value *value;
	unsigned int base;

	if (operand->type != X86_OP_MEM || operand->mem.disp != 0 ||
	    operand->mem.index != X86_REG_INVALID ||
	    operand->mem.segment != X86_REG_INVALID)
		return NULL;
	base = register_number(operand->mem.base);
	if (base == NO_REGISTER)
		return NULL;
	value = &reader->registers[base];
	return value->kind == MADE ? &reader->made[value->number] : NULL;
}

/* Zeros come first: the whole object is cleared. */
static void store_type(struct code_reader *reader, struct made_object *made,
		       struct value value, unsigned int size)
{
	if (made->store || size < 4)
		return;
	if (value.kind == NUMBER && value.number == 0)
		return;
	made->store = reader->instruction->address;
	made->type = value.kind == NUMBER ? (uint32_t)value.number : 0;
}

static void write_operand(struct code_reader *reader, const cs_x86_op *operand,
			  struct value value)
{
	struct made_object *made = find_made(reader, operand);
	struct slot place = { 0 };
	unsigned int number;

	if (operand->type == X86_OP_REG) {
		number = register_number(operand->reg);
		if (number == NO_REGISTER)
			return;
		if (operand->size < 4)
			value.kind = UNKNOWN;
		if (operand->size == 4 && value.kind == NUMBER)
			value.number = (uint32_t)value.number;
		reader->registers[number] = value;
	} else if (made) {
		store_type(reader, made, value, operand->size);
	} else if (find_place(reader, operand, &place)) {
		if (operand->size < 4)
			value.kind = UNKNOWN;
		set_slot(reader, &place, value);
	}
}

/* Of x + c and x - c; objects are not followed into their middle. */
static struct value add(struct value value, struct value other, bool subtract)
{
	if (value.kind != NUMBER || other.kind != NUMBER)
		return (struct value){ UNKNOWN, 0 };
	value.number += subtract ? -other.number : other.number;
	return value;
}

static void move_stack(struct code_reader *reader, int64_t by)
{
	reader->depth += by;
}

static void read_sum(struct code_reader *reader, const cs_x86 *x86,
		     bool subtract)
{
	const cs_x86_op *to = &x86->operands[0], *by = &x86->operands[1];

	if (to->type == X86_OP_REG &&
	    register_number(to->reg) == STACK_POINTER) {
		if (by->type == X86_OP_IMM)
			move_stack(reader, subtract ? -by->imm : by->imm);
		else
			reader->slot_count = 0;
		return;
	}
	write_operand(reader, to,
		      add(read_operand(reader, to), read_operand(reader, by),
			  subtract));
}

static void read_call(struct code_reader *reader, const cs_x86 *x86)
{
	const cs_x86_op *operand = &x86->operands[0];
	struct value argument = reader->registers[ARGUMENT];
	uint64_t target =
		operand->type == X86_OP_IMM ? (uint64_t)operand->imm : 0;
	bool allocates = target && reader->allocates(reader->data, target);

	forget_volatile(reader);
	if (argument.kind == MADE) {
		struct made_object *made = &reader->made[argument.number];

		/* That clears it, before it has a type. */
		if (made->store && !made->user)
			made->user = target;
	}
	if (!allocates || reader->made_count == MOST_MADE)
		return;
	reader->registers[RESULT] = (struct value){ MADE, reader->made_count };
	reader->made[reader->made_count++] = (struct made_object){
		.call = reader->instruction->address,
		.maker = target,
		.size = argument.kind == NUMBER ? argument.number : 0,
	};
}

static void read_return(struct code_reader *reader)
{
	const struct value *result = &reader->registers[RESULT];

	if (result->kind == MADE)
		reader->made[result->number].returned = true;
	forget_all(reader);
}

/* Of anything else: what it writes is not known any more. */
static void read_other(struct code_reader *reader)
{
	uint8_t written_count;
	cs_regs written;

	if (!disassembler_written(reader->disassembler, written,
				  &written_count)) {
		forget_all(reader);
		return;
	}
	for (uint8_t i = 0; i < written_count; i++) {
		unsigned int number = register_number(written[i]);

		if (number == STACK_POINTER)
			reader->slot_count = 0;
		else if (number != NO_REGISTER)
			reader->registers[number].kind = UNKNOWN;
	}
	for (uint8_t i = 0; i < reader->instruction->detail->x86.op_count;
	     i++) {
		const cs_x86_op *operand =
			&reader->instruction->detail->x86.operands[i];

		if (operand->type == X86_OP_MEM &&
		    (operand->access & CS_AC_WRITE))
			write_operand(reader, operand,
				      (struct value){ UNKNOWN, 0 });
	}
}

static bool is_cleared(const cs_x86 *x86)
{
	return x86->op_count >= 2 && x86->operands[0].type == X86_OP_REG &&
	       x86->operands[1].type == X86_OP_REG &&
	       x86->operands[0].reg == x86->operands[1].reg;
}

static void read_xor(struct code_reader *reader, const cs_x86 *x86)
{
	if (is_cleared(x86))
		write_operand(reader, &x86->operands[0],
			      (struct value){ NUMBER, 0 });
	else
		read_other(reader);
}

static void read_lea(struct code_reader *reader, const cs_x86 *x86)
{
	struct value value = { UNKNOWN, 0 };
	const cs_x86_op *from = &x86->operands[1];

	if (find_address(reader, from, &value.number))
		value.kind = NUMBER;
	if (x86->operands[0].type == X86_OP_REG &&
	    register_number(x86->operands[0].reg) == STACK_POINTER)
		reader->slot_count = 0;
	else
		write_operand(reader, &x86->operands[0], value);
}

static void read_stack(struct code_reader *reader, const cs_x86 *x86, bool push)
{
	const cs_x86_op *operand = &x86->operands[0];
	struct slot place = { 0 };
	struct slot *slot;

	if (push) {
		struct value value = read_operand(reader, operand);

		move_stack(reader, -8);
		place.place = reader->depth;
		set_slot(reader, &place, value);
		return;
	}
	place.place = reader->depth;
	slot = find_slot(reader, &place);
	write_operand(reader, operand,
		      slot ? slot->value : (struct value){ UNKNOWN, 0 });
	move_stack(reader, 8);
}

static void read_instruction(struct code_reader *reader)
{
	const cs_x86 *x86 = &reader->instruction->detail->x86;

	switch (reader->instruction->id) {
	case X86_INS_MOV:
	case X86_INS_MOVABS:
	case X86_INS_MOVAPS:
	case X86_INS_MOVUPS:
	case X86_INS_MOVAPD:
	case X86_INS_MOVUPD:
	case X86_INS_MOVDQA:
	case X86_INS_MOVDQU:
	case X86_INS_MOVD:
	case X86_INS_MOVQ:
		write_operand(reader, &x86->operands[0],
			      read_operand(reader, &x86->operands[1]));
		break;
	case X86_INS_LEA:
		read_lea(reader, x86);
		break;
	case X86_INS_XOR:
	case X86_INS_XORPS:
	case X86_INS_XORPD:
	case X86_INS_PXOR:
		read_xor(reader, x86);
		break;
	case X86_INS_ADD:
		read_sum(reader, x86, false);
		break;
	case X86_INS_SUB:
		read_sum(reader, x86, true);
		break;
	case X86_INS_PUSH:
		read_stack(reader, x86, true);
		break;
	case X86_INS_POP:
		read_stack(reader, x86, false);
		break;
	case X86_INS_CALL:
		read_call(reader, x86);
		break;
	case X86_INS_RET:
		read_return(reader);
		break;
	case X86_INS_JMP:
		forget_all(reader);
		break;
	default:
		read_other(reader);
	}
}

static bool is_jump(const struct code_reader *reader)
{
	return disassembler_is(reader->disassembler, X86_GRP_JUMP);
}

static int compare_addresses(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/* Where jumps within the function lead; false if there are too many. */
static bool find_targets(struct code_reader *reader, const uint8_t *code,
			 size_t size, uint64_t start)
{
	uint64_t address = start, end = start + size;

	reader->target_count = 0;
	while (disassembler_next(reader->disassembler, &code, &size,
				 &address)) {
		const cs_x86_op *operand =
			&reader->instruction->detail->x86.operands[0];

		if (!is_jump(reader) || operand->type != X86_OP_IMM ||
		    (uint64_t)operand->imm < start ||
		    (uint64_t)operand->imm >= end)
			continue;
		if (reader->target_count == MOST_TARGETS)
			return false;
		reader->targets[reader->target_count++] =
			(uint64_t)operand->imm;
	}
	qsort(reader->targets, reader->target_count, sizeof(uint64_t),
	      compare_addresses);
	return true;
}

size_t code_find_objects(struct code_reader *reader, uint64_t start,
			 uint64_t end, const struct made_object **ret)
{
	uint64_t available, address = start;
	const uint8_t *code = image_bytes(reader->image, start, &available);
	size_t size, next = 0;

	reader->made_count = 0;
	*ret = reader->made;
	if (!code || end <= start || end - start > LONGEST_FUNCTION ||
	    available < end - start)
		return 0;
	size = end - start;
	if (!find_targets(reader, code, size, start))
		return 0;
	forget_all(reader);
	reader->depth = 0;
	while (disassembler_next(reader->disassembler, &code, &size,
				 &address)) {
		uint64_t at = reader->instruction->address;

		while (next < reader->target_count &&
		       reader->targets[next] < at)
			next++;
		if (next < reader->target_count && reader->targets[next] == at)
			forget_all(reader);
		read_instruction(reader);
	}
	return reader->made_count;
}
