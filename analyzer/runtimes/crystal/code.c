#include "analyzer/runtimes/crystal/code.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/program/disassembler.h"

#include <string.h>

enum {
	GENERAL = 16,	/* general registers come first, by DWARF number, */
	REGISTERS = 32, /* then vector registers */
	NO_REGISTER = REGISTERS,
	SLOTS = 64,
	STACK_POINTER = 7,
	FRAME_POINTER = 6,
	RESULT = 0,   /* rax */
	ARGUMENT = 5, /* rdi */
	MOST_TARGETS = 4096,
	LONGEST_FUNCTION = 1 << 20,
	/*
	 * At a junction, follow this many paths side by side for this many instructions; then their
	 * common state.
	 */
	MOST_PATHS = 4,
	PATH_LENGTH = 16,
	MOST_PENDING = 64, /* jumps ahead whose targets were not reached yet */
};

/*
 * The known value of a register or stack slot: a number, or an object that the function allocated,
 * by its number. A flag is a number whose lowest byte is 0 or 1; the rest is unknown.
 */
enum value_kind { UNKNOWN, NUMBER, MADE, FLAG };

struct value {
	enum value_kind kind;
	uint64_t number;
};

static const struct value unknown = { UNKNOWN, 0 }, zero = { NUMBER, 0 }, one = { NUMBER, 1 };

/* A place of the stack. */
struct slot {
	int64_t place; /* from the stack pointer at the function's start */
	bool by_frame; /* from the frame pointer */
	struct value value;
};

struct code_state {
	struct value registers[REGISTERS];
	struct slot slots[SLOTS];
	size_t slot_count;
	int64_t depth;			/* of the stack pointer */
	uint64_t typed[MOST_MADE / 64]; /* a bit for each object with a type */
};

/* A jump ahead, and what was known then. */
struct pending {
	uint64_t target;
	struct code_state state;
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
	struct code_state paths[MOST_PATHS];
	size_t path_count;
	unsigned int path_left;	  /* instructions, until there is one */
	struct code_state *state; /* of the path that is followed now */
	struct pending pending[MOST_PENDING];
	size_t pending_count;
	bool missed; /* objects of the function */
};

struct error *code_reader_create(const struct image *image,
				 bool (*allocates)(const void *data, uint64_t function),
				 const void *data, struct code_reader **ret)
{
	_cleanup_(code_reader_destroy) struct code_reader *reader = calloc(1, sizeof(*reader));
	const struct arch *arch = image->arch;

	TRY_MEMORY(reader);
	if (arch->disassembler != CS_ARCH_X86)
		return error_create(ERROR_NOT_SUPPORTED, "machine code of %s cannot be read",
				    arch->name);
	reader->image = image;
	reader->allocates = allocates;
	reader->data = data;
	TRY(disassembler_create(arch, &reader->disassembler));
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

/* Forget all but the depth of the stack. */
static void code_state_forget(struct code_state *state)
{
	memset(state->registers, 0, sizeof(state->registers));
	state->slot_count = 0;
}

/* The state of the slot; NULL: unknown. */
static struct slot *code_state_find(struct code_state *state, const struct slot *place)
{
	for (size_t i = 0; i < state->slot_count; i++)
		if (state->slots[i].place == place->place &&
		    state->slots[i].by_frame == place->by_frame)
			return &state->slots[i];
	return NULL;
}

static void code_state_set(struct code_state *state, const struct slot *place, struct value value)
{
	struct slot *slot = code_state_find(state, place);

	if (!slot && value.kind == UNKNOWN)
		return;
	if (!slot) {
		if (state->slot_count == SLOTS)
			state->slot_count = 0;
		slot = &state->slots[state->slot_count++];
		*slot = *place;
	}
	slot->value = value;
}

static bool is_same(struct value value, struct value other)
{
	return value.kind == other.kind && value.number == other.number;
}

/* Keep what is known in both. */
static void code_state_intersect(struct code_state *state, const struct code_state *other)
{
	struct code_state copy = *other;

	for (size_t i = 0; i < REGISTERS; i++)
		if (!is_same(state->registers[i], other->registers[i]))
			state->registers[i].kind = UNKNOWN;
	if (state->depth != other->depth)
		state->slot_count = 0;
	for (size_t i = 0; i < state->slot_count; i++) {
		const struct slot *slot = code_state_find(&copy, &state->slots[i]);

		if (!slot || !is_same(slot->value, state->slots[i].value))
			state->slots[i].value.kind = UNKNOWN;
	}
	for (size_t i = 0; i < MOST_MADE / 64; i++)
		state->typed[i] |= other->typed[i];
}

static void rename_value(struct value *value, size_t made, size_t other)
{
	if (value->kind == MADE && value->number == made)
		value->number = other;
}

/* The object turned out to be another one. */
static void code_state_rename(struct code_state *state, size_t made, size_t other)
{
	for (size_t i = 0; i < REGISTERS; i++)
		rename_value(&state->registers[i], made, other);
	for (size_t i = 0; i < state->slot_count; i++)
		rename_value(&state->slots[i].value, made, other);
}

/* Note that the object has a type; false: it had one already. */
static bool code_state_take_type(struct code_state *state, size_t made)
{
	uint64_t bit = UINT64_C(1) << (made % 64);
	bool had = state->typed[made / 64] & bit;

	state->typed[made / 64] |= bit;
	return !had;
}

/* Capstone's name of a register, of any width, as a number of ours. */
static unsigned int register_number(const struct code_reader *reader, unsigned int name)
{
	unsigned int number = reader->image->arch->disassembled(name);

	if (name >= X86_REG_XMM0 && name <= X86_REG_XMM15)
		return GENERAL + (name - X86_REG_XMM0);
	return number < GENERAL ? number : NO_REGISTER;
}

/* Forget the registers that a call does not preserve. */
static void forget_volatile(struct code_reader *reader)
{
	static const unsigned int kept[] = { 3, 6, 7, 12, 13, 14, 15 };
	struct value values[REGISTERS] = { 0 };

	for (size_t i = 0; i < COUNT_OF(kept); i++)
		values[kept[i]] = reader->state->registers[kept[i]];
	memcpy(reader->state->registers, values, sizeof(values));
}

/* True if the operand is a stack slot. */
static bool find_place(const struct code_reader *reader, const cs_x86_op *operand, struct slot *ret)
{
	unsigned int base;

	if (operand->type != X86_OP_MEM || operand->mem.index != X86_REG_INVALID ||
	    operand->mem.segment != X86_REG_INVALID)
		return false;
	base = register_number(reader, operand->mem.base);
	if (base != STACK_POINTER && base != FRAME_POINTER)
		return false;
	ret->by_frame = base == FRAME_POINTER;
	ret->place = operand->mem.disp + (ret->by_frame ? 0 : reader->state->depth);
	return true;
}

/* The address that the operand of memory means, if that is known. */
static bool find_address(const struct code_reader *reader, const cs_x86_op *operand, uint64_t *ret)
{
	const cs_insn *instruction = reader->instruction;
	unsigned int base;

	if (operand->type != X86_OP_MEM || operand->mem.index != X86_REG_INVALID ||
	    operand->mem.segment != X86_REG_INVALID)
		return false;
	if (operand->mem.base == X86_REG_RIP) {
		*ret = instruction->address + instruction->size + (uint64_t)operand->mem.disp;
		return true;
	}
	base = register_number(reader, operand->mem.base);
	if (base == NO_REGISTER || reader->state->registers[base].kind != NUMBER)
		return false;
	*ret = reader->state->registers[base].number + (uint64_t)operand->mem.disp;
	return true;
}

/* A constant of the program. */
static struct value read_constant(const struct code_reader *reader, uint64_t address,
				  unsigned int size)
{
	const struct region *region = image_find(reader->image, address);
	struct value value = { NUMBER, 0 };

	size = MIN(size, sizeof(value.number));
	if (!region || (region->rights & RIGHT_WRITE) ||
	    !image_read(reader->image, address, &value.number, size))
		return unknown;
	return value;
}

static struct value read_operand(struct code_reader *reader, const cs_x86_op *operand)
{
	struct slot place = { 0 };
	const struct slot *slot;
	unsigned int number;
	uint64_t address;

	switch (operand->type) {
	case X86_OP_IMM:
		return (struct value){ NUMBER, (uint64_t)operand->imm };
	case X86_OP_REG:
		number = register_number(reader, operand->reg);
		if (number == NO_REGISTER || operand->size < 4)
			return unknown;
		return reader->state->registers[number];
	case X86_OP_MEM:
		if (find_place(reader, operand, &place)) {
			slot = code_state_find(reader->state, &place);
			return slot ? slot->value : unknown;
		}
		if (find_address(reader, operand, &address))
			return read_constant(reader, address, operand->size);
		return unknown;
	default:
		return unknown;
	}
}

/* True if the operand is the start of an allocated object; sets its number. */
static bool find_made(struct code_reader *reader, const cs_x86_op *operand, size_t *ret)
{
	const struct value *value;
	unsigned int base;

	if (operand->type != X86_OP_MEM || operand->mem.disp != 0 ||
	    operand->mem.index != X86_REG_INVALID || operand->mem.segment != X86_REG_INVALID)
		return false;
	base = register_number(reader, operand->mem.base);
	if (base == NO_REGISTER)
		return false;
	value = &reader->state->registers[base];
	*ret = value->number;
	return value->kind == MADE;
}

/* The object of this path, which has another type than on the others. */
static struct made_object *split_made(struct code_reader *reader, size_t number)
{
	if (reader->made_count == MOST_MADE)
		reader->missed = true;
	if (reader->made_count == MOST_MADE)
		return NULL;
	reader->made[reader->made_count] = reader->made[number];
	code_state_rename(reader->state, number, reader->made_count);
	code_state_take_type(reader->state, reader->made_count);
	return &reader->made[reader->made_count++];
}

/* Zeros come first: the whole object is cleared. */
static void store_type(struct code_reader *reader, size_t number, struct value value,
		       unsigned int size)
{
	struct made_object *made = &reader->made[number];
	uint32_t type = value.kind == NUMBER ? (uint32_t)value.number : 0;

	if (size < 4 || (value.kind == NUMBER && value.number == 0) ||
	    !code_state_take_type(reader->state, number))
		return;
	if (made->store && made->type != type)
		made = split_made(reader, number);
	if (!made)
		return;
	made->store = reader->instruction->address;
	made->type = type;
}

static void write_operand(struct code_reader *reader, const cs_x86_op *operand, struct value value)
{
	struct slot place = { 0 };
	unsigned int number;
	size_t made;

	if (operand->type == X86_OP_REG) {
		number = register_number(reader, operand->reg);
		if (number == NO_REGISTER)
			return;
		if (operand->size < 4)
			value.kind = UNKNOWN;
		if (operand->size == 4 && value.kind == NUMBER)
			value.number = (uint32_t)value.number;
		reader->state->registers[number] = value;
	} else if (find_made(reader, operand, &made)) {
		store_type(reader, made, value, operand->size);
	} else if (find_place(reader, operand, &place)) {
		if (operand->size < 4)
			value.kind = UNKNOWN;
		code_state_set(reader->state, &place, value);
	}
}

/* x + c or x - c; addresses within objects are not followed. */
static struct value add(struct value value, struct value other, bool subtract)
{
	if (value.kind != NUMBER || other.kind != NUMBER)
		return unknown;
	value.number += subtract ? -other.number : other.number;
	return value;
}

static void read_sum(struct code_reader *reader, const cs_x86 *x86, bool subtract)
{
	const cs_x86_op *to = &x86->operands[0], *by = &x86->operands[1];

	if (to->type == X86_OP_REG && register_number(reader, to->reg) == STACK_POINTER) {
		if (by->type == X86_OP_IMM)
			reader->state->depth += subtract ? -by->imm : by->imm;
		else
			reader->state->slot_count = 0;
		return;
	}
	write_operand(reader, to,
		      add(read_operand(reader, to), read_operand(reader, by), subtract));
}

/* An object of the same size is the same on all paths. */
static void add_made(struct code_reader *reader, uint64_t maker, uint64_t size)
{
	const struct made_object made = {
		.call = reader->instruction->address,
		.maker = maker,
		.size = size,
	};
	size_t number = reader->made_count;

	for (size_t i = number; i > 0 && reader->made[i - 1].call == made.call; i--)
		if (reader->made[i - 1].size == size)
			number = i - 1;
	if (number == MOST_MADE)
		reader->missed = true;
	if (number == MOST_MADE)
		return;
	if (number == reader->made_count)
		reader->made[reader->made_count++] = made;
	reader->state->registers[RESULT] = (struct value){ MADE, number };
}

static void read_call(struct code_reader *reader, const cs_x86 *x86)
{
	const cs_x86_op *operand = &x86->operands[0];
	struct value argument = reader->state->registers[ARGUMENT];
	uint64_t target = operand->type == X86_OP_IMM ? (uint64_t)operand->imm : 0;
	bool allocates = target && reader->allocates(reader->data, target);

	forget_volatile(reader);
	if (argument.kind == MADE) {
		struct made_object *made = &reader->made[argument.number];

		/* The first user clears the object, before it has a type. */
		if (made->store && !made->user)
			made->user = target;
	}
	if (allocates)
		add_made(reader, target, argument.kind == NUMBER ? argument.number : 0);
}

static void read_return(struct code_reader *reader)
{
	const struct value *result = &reader->state->registers[RESULT];

	if (result->kind == MADE)
		reader->made[result->number].returned = true;
}

/* Forget what any other instruction writes. */
static void read_other(struct code_reader *reader)
{
	uint8_t written_count;
	cs_regs written;

	if (!disassembler_written(reader->disassembler, written, &written_count)) {
		code_state_forget(reader->state);
		return;
	}
	for (uint8_t i = 0; i < written_count; i++) {
		unsigned int number = register_number(reader, written[i]);

		if (number == STACK_POINTER)
			reader->state->slot_count = 0;
		else if (number != NO_REGISTER)
			reader->state->registers[number].kind = UNKNOWN;
	}
	for (uint8_t i = 0; i < reader->instruction->detail->x86.op_count; i++) {
		const cs_x86_op *operand = &reader->instruction->detail->x86.operands[i];

		if (operand->type == X86_OP_MEM && (operand->access & CS_AC_WRITE))
			write_operand(reader, operand, unknown);
	}
}

static void read_xor(struct code_reader *reader, const cs_x86 *x86)
{
	if (x86->op_count >= 2 && x86->operands[0].type == X86_OP_REG &&
	    x86->operands[1].type == X86_OP_REG && x86->operands[0].reg == x86->operands[1].reg)
		write_operand(reader, &x86->operands[0], zero);
	else
		read_other(reader);
}

/* Let the operand be value on this path, and other on a new one. */
static void fork_path(struct code_reader *reader, const cs_x86_op *operand, struct value value,
		      struct value other)
{
	struct code_state *state = reader->state;

	if (reader->path_count == MOST_PATHS) {
		write_operand(reader, operand, unknown);
		return;
	}
	reader->paths[reader->path_count] = *state;
	reader->state = &reader->paths[reader->path_count++];
	write_operand(reader, operand, other);
	reader->state = state;
	write_operand(reader, operand, value);
	reader->path_left = PATH_LENGTH;
}

/* SETcc: where the rest of the register is 0, follow a path for each value. */
static void read_flag(struct code_reader *reader, const cs_x86 *x86)
{
	cs_x86_op whole = x86->operands[0];
	struct value *value;
	unsigned int number;

	if (whole.type != X86_OP_REG)
		return;
	number = register_number(reader, whole.reg);
	if (number == NO_REGISTER)
		return;
	value = &reader->state->registers[number];
	whole.size = sizeof(uint64_t);
	if (value->kind == NUMBER && value->number <= UINT8_MAX)
		fork_path(reader, &whole, zero, one);
	else
		*value = (struct value){ FLAG, 0 };
}

static void read_extension(struct code_reader *reader, const cs_x86 *x86)
{
	const cs_x86_op *from = &x86->operands[1];
	unsigned int number = from->type == X86_OP_REG && from->size == 1
				      ? register_number(reader, from->reg)
				      : NO_REGISTER;

	if (number != NO_REGISTER && reader->state->registers[number].kind == FLAG)
		fork_path(reader, &x86->operands[0], zero, one);
	else
		read_other(reader);
}

static void read_choice(struct code_reader *reader, const cs_x86 *x86)
{
	struct value value = read_operand(reader, &x86->operands[0]);
	struct value other = read_operand(reader, &x86->operands[1]);

	if (value.kind == UNKNOWN || other.kind == UNKNOWN)
		write_operand(reader, &x86->operands[0], unknown);
	else
		fork_path(reader, &x86->operands[0], value, other);
}

static void read_lea(struct code_reader *reader, const cs_x86 *x86)
{
	struct value value = unknown;
	const cs_x86_op *from = &x86->operands[1];

	if (find_address(reader, from, &value.number))
		value.kind = NUMBER;
	if (x86->operands[0].type == X86_OP_REG &&
	    register_number(reader, x86->operands[0].reg) == STACK_POINTER)
		reader->state->slot_count = 0;
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

		reader->state->depth -= 8;
		place.place = reader->state->depth;
		code_state_set(reader->state, &place, value);
		return;
	}
	place.place = reader->state->depth;
	slot = code_state_find(reader->state, &place);
	write_operand(reader, operand, slot ? slot->value : unknown);
	reader->state->depth += 8;
}

static bool is_called(const struct code_reader *reader, const char *prefix)
{
	return strncmp(reader->instruction->mnemonic, prefix, strlen(prefix)) == 0;
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
		write_operand(reader, &x86->operands[0], read_operand(reader, &x86->operands[1]));
		break;
	case X86_INS_LEA:
		read_lea(reader, x86);
		break;
	case X86_INS_MOVZX:
		read_extension(reader, x86);
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
	default:
		if (is_called(reader, "cmov"))
			read_choice(reader, x86);
		else if (is_called(reader, "set"))
			read_flag(reader, x86);
		else
			read_other(reader);
	}
}

/* The target of a jump; 0: no jump, or an unknown target. */
static uint64_t jump_target(const struct code_reader *reader)
{
	const cs_x86_op *operand = &reader->instruction->detail->x86.operands[0];

	return disassembler_is(reader->disassembler, X86_GRP_JUMP) && operand->type == X86_OP_IMM
		       ? (uint64_t)operand->imm
		       : 0;
}

/*
 * Find the targets of jumps within the function; the lowest bit marks backward jumps. False if
 * there are too many.
 */
static bool find_targets(struct code_reader *reader, const uint8_t *code, size_t size,
			 uint64_t start)
{
	uint64_t address = start, end = start + size;

	reader->target_count = 0;
	while (disassembler_next(reader->disassembler, &code, &size, &address)) {
		uint64_t target = jump_target(reader);

		if (target < start || target >= end)
			continue;
		if (reader->target_count == MOST_TARGETS)
			return false;
		reader->targets[reader->target_count++] =
			target << 1 | (target <= reader->instruction->address);
	}
	SORT(reader->targets, reader->target_count, compare_u64);
	return true;
}

/* Keep what is known on all paths. */
static void merge_paths(struct code_reader *reader)
{
	for (size_t i = 1; i < reader->path_count; i++)
		code_state_intersect(&reader->paths[0], &reader->paths[i]);
	reader->path_count = MIN(reader->path_count, 1);
}

/* Note what is known at a jump ahead, for where it leads to. */
static void add_pending(struct code_reader *reader, uint64_t target)
{
	enum { NEAR = 512 };
	size_t alike = 0, last = 0;

	if (target <= reader->instruction->address || target - reader->instruction->address > NEAR)
		return;
	merge_paths(reader);
	for (size_t i = 0; i < reader->pending_count; i++) {
		if (reader->pending[i].target != target)
			continue;
		alike++;
		last = i;
	}
	if (alike == MOST_PATHS)
		code_state_intersect(&reader->pending[last].state, &reader->paths[0]);
	else if (reader->pending_count < MOST_PENDING)
		reader->pending[reader->pending_count++] =
			(struct pending){ target, reader->paths[0] };
}

/* Go on with the paths that meet here, the one from above included. */
static void join_paths(struct code_reader *reader, uint64_t at)
{
	size_t kept = 0;

	merge_paths(reader);
	list_for_each(pending, reader->pending, reader->pending_count) {
		if (pending->target == at && reader->path_count < MOST_PATHS)
			reader->paths[reader->path_count++] = pending->state;
		else if (pending->target > at)
			reader->pending[kept++] = *pending;
	}
	reader->pending_count = kept;
	reader->path_left = PATH_LENGTH;
}

/* Join the paths that lead here; at a loop, forget. */
static void enter(struct code_reader *reader, size_t *next)
{
	uint64_t at = reader->instruction->address;
	bool joined = false, again = false;

	for (; *next < reader->target_count && reader->targets[*next] >> 1 <= at; ++*next) {
		joined |= reader->targets[*next] >> 1 == at;
		again |= reader->targets[*next] == (at << 1 | 1);
	}
	if (joined)
		join_paths(reader, at);
	if (reader->path_count == 0 || again) {
		code_state_forget(&reader->paths[0]);
		reader->path_count = 1;
	} else if (reader->path_count > 1 && reader->path_left-- == 0) {
		merge_paths(reader);
	}
}

/* The instruction, on each path that leads to it. */
static void read_paths(struct code_reader *reader)
{
	size_t count = reader->path_count;
	uint64_t target = jump_target(reader);
	unsigned int id = reader->instruction->id;

	for (size_t i = 0; i < count; i++) {
		reader->state = &reader->paths[i];
		read_instruction(reader);
	}
	if (target)
		add_pending(reader, target);
	if (id == X86_INS_JMP || id == X86_INS_RET)
		reader->path_count = 0;
}

size_t code_find_objects(struct code_reader *reader, uint64_t start, uint64_t end,
			 const struct made_object **ret)
{
	uint64_t available, address = start;
	const uint8_t *code = image_bytes(reader->image, start, &available);
	size_t size, next = 0;

	reader->made_count = 0;
	reader->missed = true;
	*ret = reader->made;
	if (!code || end <= start || end - start > LONGEST_FUNCTION || available < end - start)
		return 0;
	size = end - start;
	if (!find_targets(reader, code, size, start))
		return 0;
	reader->missed = false;
	reader->paths[0] = (struct code_state){ 0 };
	reader->path_count = 0;
	reader->pending_count = 0;
	while (disassembler_next(reader->disassembler, &code, &size, &address)) {
		enter(reader, &next);
		read_paths(reader);
	}
	return reader->made_count;
}

bool code_reader_missed(const struct code_reader *reader)
{
	return reader->missed;
}
