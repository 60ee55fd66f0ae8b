#include "analyzer/types/casts.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/list.h"
#include "analyzer/program/disassembler.h"
#include "analyzer/types/kept.h"
#include "analyzer/types/numbers.h"

#include <string.h>

enum {
	MOST_CODE = 1 << 20, /* bytes of a function */
	MOST_CODE_IN_ALL = 1 << 28,
	MOST_COMPARED = 1 << 30, /* variables of frames with places in them */
	MOST_CASTS = 1 << 20,
	ACTIVE = 4, /* variables in one register at once: those inlined into each other */
	REGISTERS = MOST_UNWOUND,
};

/* The contents of a register. */
enum holds {
	NOTHING, /* that matters */
	POINTER, /* to a value of the type */
	MEMBER,	 /* the value loaded from the place, whose type is open */
	RESULT,	 /* of a call, whose type is not told; the place is its number */
};

struct value {
	enum holds holds;
	type_number type;
	uint32_t place; /* of a pointer: the member that it stood in, or NO_MEMBER */
};

struct signature {
	uint64_t entry, end; /* of the part that begins there */
	type_number result;
	type_number parameters[MOST_PARAMETERS];
	bool is_of_library;
};

/* Code of a function apart from where it begins, as for what seldom happens. */
struct part {
	uint64_t start, end, entry;
};

struct code {
	const struct casts_input *input;
	struct casts *casts;
	const struct arch *arch;
	struct disassembler *disassembler;
	const cs_insn *instruction;
	HASH_TABLE(struct signature) signatures;
	ARRAY(struct part) parts;	     /* by address */
	ARRAY(struct type_variable) statics; /* by address */
	HASH_TABLE(type_number) results;
	ARRAY(uint8_t) bytes;
	struct error *error;
	uint64_t read; /* functions */
	uint64_t code_read, compared;
	/* The function that is read. */
	const struct function *function;
	size_t next_local; /* that begins */
	const struct function_local *active[REGISTERS][ACTIVE];
	struct value values[REGISTERS];
	struct numbers numbers; /* only where somebody listens */
};

static const struct data_type *type_of(const struct code *code, type_number number)
{
	return type_get(code->input->types, number);
}

static bool is_aggregate(const struct code *code, type_number number)
{
	enum type_kind kind = type_of(code, number)->kind;

	return kind == TYPE_STRUCTURE || kind == TYPE_UNION;
}

/* True if the declaration leaves the pointer's target open. */
static bool is_open(const struct code *code, type_number target)
{
	enum type_kind kind = type_of(code, target)->kind;

	return kind == TYPE_NONE || kind == TYPE_CHARACTER;
}

static void note_place(struct code *code, uint32_t place, type_number type)
{
	uint64_t key = (uint64_t)place << 32 | type;

	if (code->error || place == NO_MEMBER || code->casts->all.count >= MOST_CASTS ||
	    table_find(&code->casts->all, key, item, item->place == place && item->type == type))
		return;
	code->error = table_append(&code->casts->all, key, (struct cast){ place, type });
}

/* The value is used where a pointer to a type is meant. */
static void note_use(struct code *code, const struct value *value, type_number type)
{
	if (value->holds == RESULT && code->input->listener && value->place != NO_CALL)
		code->input->listener->use(code->input->listener->data, value->place, type);
	if (!is_aggregate(code, type))
		return;
	if (value->holds == MEMBER)
		note_place(code, value->place, type);
	else if (value->holds == RESULT && !code->error &&
		 !table_find(&code->results, type, item, *item == type))
		code->error = table_append(&code->results, type, type);
}

/* A result that becomes a "char *" matters to who listens, too. */
static void note_bytes(struct code *code, const struct value *value, type_number target)
{
	if (code->input->listener && value->holds == RESULT && value->place != NO_CALL &&
	    type_of(code, target)->kind == TYPE_CHARACTER)
		code->input->listener->use(code->input->listener->data, value->place, target);
}

/* The value of a pointer that is declared so. */
static struct value declared(const struct code *code, type_number target, uint32_t place)
{
	return is_open(code, target) ? (struct value){ MEMBER, NO_TYPE, place }
				     : (struct value){ POINTER, target, place };
}

/* The register's number, where an operand is the whole of it. */
static uint8_t whole_register(const struct code *code, const cs_x86_op *operand)
{
	uint8_t number = operand->type == X86_OP_REG && operand->size == sizeof(uint64_t)
				 ? code->arch->disassembled(operand->reg)
				 : NOT_A_REGISTER;

	return number < REGISTERS ? number : NOT_A_REGISTER;
}

/* The value in the register: as seen, or else that of its variable. */
static struct value value_of(const struct code *code, uint8_t number)
{
	struct value value = code->values[number];

	if (value.holds != NOTHING)
		return value;
	for (size_t i = 0; i < ACTIVE; i++) {
		const struct function_local *local = code->active[number][i];
		const struct data_type *type;

		if (!local || local->end <= code->instruction->address)
			continue;
		type = type_of(code, local->type);
		if (type->kind == TYPE_POINTER && !is_open(code, type->target))
			return (struct value){ POINTER, type->target, NO_MEMBER };
	}
	return value;
}

/* A place in memory that an operand means. */
struct meant {
	type_number type; /* of the value around it */
	uint64_t offset;  /* in that */
	uint32_t place;	  /* that the pointer to that value stood in */
	bool is_indexed;
};

static bool find_static(const struct code *code, uint64_t address, struct meant *ret)
{
	size_t low = 0, high = code->statics.count;
	const struct type_variable *variable;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (code->statics.items[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return false;
	variable = &code->statics.items[low - 1];
	*ret = (struct meant){ variable->type, address - variable->address, NO_MEMBER, false };
	return ret->offset < type_of(code, variable->type)->size;
}

/* A variable in the frame, by how far it is from the canonical frame address. */
static bool find_in_frame(struct code *code, int64_t offset, struct meant *ret)
{
	code->compared += code->function->local_count;
	if (code->compared > MOST_COMPARED)
		return false;
	for (size_t i = code->function->local_count; i-- > 0;) {
		const struct function_local *local = &code->function->locals[i];
		uint64_t size = type_of(code, local->type)->size;

		if (local->in != NOT_A_REGISTER || offset < local->offset ||
		    (uint64_t)offset - (uint64_t)local->offset >= size ||
		    local->start > code->instruction->address ||
		    local->end <= code->instruction->address)
			continue;
		*ret = (struct meant){ local->type, (uint64_t)offset - (uint64_t)local->offset,
				       NO_MEMBER, false };
		return true;
	}
	return false;
}

static bool find_meant(struct code *code, const cs_x86_op *operand, struct meant *ret)
{
	const cs_insn *instruction = code->instruction;
	struct value value;
	uint8_t base;

	if (operand->type != X86_OP_MEM || operand->mem.segment)
		return false;
	base = code->arch->disassembled(operand->mem.base);
	if (base == code->arch->unwound_return)
		return find_static(code,
				   instruction->address + instruction->size +
					   (uint64_t)operand->mem.disp,
				   ret);
	if (base >= REGISTERS)
		return false;
	value = value_of(code, base);
	if (value.holds == NOTHING && base == code->arch->frame_pointer)
		return find_in_frame(code, operand->mem.disp - code->arch->frame_pointer_depth,
				     ret);
	if (value.holds != POINTER || operand->mem.disp < 0)
		return false;
	*ret = (struct meant){ value.type, (uint64_t)operand->mem.disp, value.place,
			       operand->mem.index != 0 };
	return true;
}

/*
 * The pointer that is declared to stand at a place: whether it is known, what it leads to, and by
 * what the place is known.
 */
static bool find_pointer(struct code *code, const struct meant *meant, type_number *ret_target,
			 uint32_t *ret_place)
{
	const struct data_type *type = type_of(code, meant->type);
	const struct slot *slot;

	if (type->kind == TYPE_POINTER) {
		*ret_target = type->target;
		*ret_place = meant->place == NO_MEMBER ? NO_MEMBER : ELEMENT_OF(meant->place);
		return true;
	}
	slot = type->size ? slot_at(code->input->slots, meant->type,
				    meant->is_indexed ? meant->offset % type->size : meant->offset)
			  : NULL;
	if (!slot)
		return false;
	/* The target of a union's member is as open as that of "void *". */
	*ret_target = slot->is_choice || slot->guard_count ? NO_TYPE : slot->target;
	*ret_place = slot->member;
	return true;
}

static void read_load(struct code *code, uint8_t to, const cs_x86_op *from)
{
	type_number target;
	struct meant meant;
	uint32_t place;

	code->values[to] =
		find_meant(code, from, &meant) && find_pointer(code, &meant, &target, &place)
			? declared(code, target, place)
			: (struct value){ NOTHING, NO_TYPE, NO_MEMBER };
}

static void read_store(struct code *code, const cs_x86_op *to, uint8_t from)
{
	struct value value = value_of(code, from);
	type_number target;
	struct meant meant;
	uint32_t place;

	if (value.holds == NOTHING || !find_meant(code, to, &meant) ||
	    !find_pointer(code, &meant, &target, &place))
		return;
	note_bytes(code, &value, target);
	if (!is_open(code, target))
		note_use(code, &value, target);
	else if (value.holds == POINTER && is_aggregate(code, value.type))
		note_place(code, place, value.type);
}

/* The operand of an addition that came from a member; the sum points into the same target. */
static struct value sum(const struct value *first, const struct value *second)
{
	const struct value *value = first->holds == MEMBER ? first : second;

	if (value->holds != MEMBER || value->place == NO_MEMBER || value->place >= ELEMENT_OF(0))
		return (struct value){ NOTHING, NO_TYPE, NO_MEMBER };
	return (struct value){ MEMBER, NO_TYPE, INSIDE_OF(value->place) };
}

/* Read an addition to a register; drops its value if that is a number. */
static void read_sum(struct code *code, uint8_t to, const cs_x86_op *other)
{
	struct value before = value_of(code, to);
	uint8_t other_register = whole_register(code, other);

	code->values[to] = (struct value){ NOTHING, NO_TYPE, NO_MEMBER };
	if (other_register != NOT_A_REGISTER)
		code->values[to] = value_of(code, other_register);
	else if (other->type == X86_OP_MEM)
		read_load(code, to, other);
	code->values[to] = sum(&before, &code->values[to]);
}

static struct value value_in(const struct code *code, unsigned int disassembled)
{
	uint8_t number = disassembled ? code->arch->disassembled(disassembled) : NOT_A_REGISTER;

	return number < REGISTERS ? value_of(code, number)
				  : (struct value){ NOTHING, NO_TYPE, NO_MEMBER };
}

/* The address of a static variable, or a sum. */
static void read_address(struct code *code, uint8_t to, const cs_x86_op *from)
{
	struct value base = value_in(code, from->mem.base);
	struct value index = value_in(code, from->mem.scale == 1 ? from->mem.index : 0);
	struct meant meant;

	code->values[to] = sum(&base, &index);
	if (from->type == X86_OP_MEM &&
	    code->arch->disassembled(from->mem.base) == code->arch->unwound_return &&
	    find_meant(code, from, &meant) && meant.offset == 0 && is_aggregate(code, meant.type))
		code->values[to] = (struct value){ POINTER, meant.type, NO_MEMBER };
}

static const struct signature *find_signature(const struct code *code, uint64_t entry)
{
	return table_find(&code->signatures, entry, item, item->entry == entry);
}

/* Arguments are what parameters are declared as. */
static void pass_arguments(struct code *code, const struct signature *signature)
{
	for (size_t i = 0; i < MOST_PARAMETERS; i++) {
		const struct data_type *type = type_of(code, signature->parameters[i]);
		struct value value = value_of(code, code->arch->parameters[i]);

		if (type->kind == TYPE_POINTER)
			note_use(code, &value, type->target);
	}
}

/* The address in a word, which may differ in another core of the same build. */
static bool follow(struct code *code, uint64_t slot, uint64_t *ret)
{
	struct casts *casts = code->casts;
	bool is_there = image_read_u64(code->input->image, slot, ret);
	struct call_slot followed = { slot, is_there ? *ret : FOLLOWED_NOWHERE };

	if (!code->error && !table_find(&casts->followed, slot, item, item->slot == slot))
		code->error = table_append(&casts->followed, slot, followed);
	return is_there;
}

/* The function that a stub of the linkage table jumps to; else the address itself. */
static uint64_t follow_stub(struct code *code, uint64_t address)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t bytes[12];
	size_t at = 0;
	int32_t distance;
	uint64_t found;

	if (!image_read(code->input->image, address, bytes, sizeof(bytes)))
		return address;
	if (memcmp(bytes, endbr64, sizeof(endbr64)) == 0)
		at = sizeof(endbr64);
	at += bytes[at] == 0xf2;
	if (bytes[at] != 0xff || bytes[at + 1] != 0x25)
		return address;
	memcpy(&distance, bytes + at + 2, sizeof(distance));
	return follow(code, address + at + 2 + sizeof(distance) + (uint64_t)(int64_t)distance,
		      &found)
		       ? found
		       : address;
}

/*
 * True if the linkage table has not been asked yet for the function: it was never called from this
 * module. Such a stub pushes a number and jumps to the loader.
 */
static bool was_never_called(const struct code *code, uint64_t callee)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	enum { PUSH = 0x68, JUMP = 0xe9, BOUND_JUMP = 0xf2 };
	uint8_t bytes[12];
	size_t at;

	if (!callee || !image_read(code->input->image, callee, bytes, sizeof(bytes)))
		return false;
	at = memcmp(bytes, endbr64, sizeof(endbr64)) == 0 ? sizeof(endbr64) : 0;
	return bytes[at] == PUSH && (bytes[at + 5] == JUMP || bytes[at + 5] == BOUND_JUMP);
}

/*
 * The address of the pointer through which a function is called, such as the program's hook for
 * malloc(); 0: unknown.
 */
static uint64_t find_hook(struct code *code, const cs_x86_op *to)
{
	const uint8_t in = whole_register(
		code, &(cs_x86_op){ .type = X86_OP_REG,
				    .size = sizeof(uint64_t),
				    .reg = to->type == X86_OP_MEM ? to->mem.base : to->reg });
	const struct number *number = in == NOT_A_REGISTER ? NULL : &code->numbers.registers[in];
	uint64_t place;

	if (to->type == X86_OP_REG)
		return number && number->is_word ? number->value : 0;
	if (numbers_place(&code->numbers, to, &place))
		return place;
	/* The address of the pointer was loaded from a table of the linker's. */
	return to->type == X86_OP_MEM && !to->mem.index && !to->mem.segment && number &&
			       number->is_word && follow(code, number->value, &place)
		       ? place + (uint64_t)to->mem.disp
		       : 0;
}

/* The function that is called; 0: it is not known. */
static uint64_t find_callee(struct code *code)
{
	const cs_x86_op *to = code->instruction->detail->x86.operands;
	uint64_t address, hook = to->type == X86_OP_IMM ? 0 : find_hook(code, to);

	if (to->type == X86_OP_IMM)
		return follow_stub(code, (uint64_t)to->imm);
	return hook && follow(code, hook, &address) ? address : 0;
}

/* Tell who listens of the call; returns its number. */
static uint32_t tell_call(struct code *code)
{
	const struct code_listener *listener = code->input->listener;
	struct code_call call = {
		.address = code->instruction->address,
		.function = code->function->entry,
		.function_result = code->function->result,
		.locals = code->function->locals,
		.local_count = code->function->local_count,
	};
	const struct signature *signature;
	uint32_t ret = NO_CALL;

	if (!listener || code->error)
		return NO_CALL;
	call.callee = find_callee(code);
	if (was_never_called(code, call.callee))
		return NO_CALL;
	signature = find_signature(code, call.callee);
	call.is_known = signature;
	call.is_of_library = signature && signature->is_of_library;
	call.result = signature ? signature->result : NO_TYPE;
	for (size_t i = 0; i < MOST_PARAMETERS; i++) {
		const struct number *number = &code->numbers.registers[code->arch->parameters[i]];

		call.arguments[i] = number->value;
		call.constant |= (uint8_t)(number->is_constant << i);
		call.passed[i] = number->parameter;
		call.factors[i] = number->factor;
	}
	code->error = listener->call(listener->data, &call, &ret);
	return ret;
}

/* The function returns the value, or the result of what it jumps to. */
static void read_return(struct code *code, const struct value *value)
{
	const struct code_listener *listener = code->input->listener;
	const struct data_type *result = type_of(code, code->function->result);
	const struct number *number = &code->numbers.registers[code->arch->result];

	if (listener && code->instruction->id == X86_INS_RET && number->call)
		listener->give(listener->data, number->call - 1, number->value);
	if (listener && result->kind == TYPE_POINTER && !is_open(code, result->target))
		note_use(code, value, result->target);
}

static void read_call(struct code *code)
{
	const cs_x86_op *to = code->instruction->detail->x86.operands;
	const struct signature *signature =
		to->type == X86_OP_IMM ? find_signature(code, (uint64_t)to->imm) : NULL;
	uint32_t number = tell_call(code);
	const struct data_type *result;

	code->numbers.call = number + 1; /* 0 of NO_CALL */
	if (signature)
		pass_arguments(code, signature);
	list_for_each(described, code->arch->registers, code->arch->register_count) {
		if (described->unwound < REGISTERS && !described->preserved)
			code->values[described->unwound].holds = NOTHING;
	}
	result = signature ? type_of(code, signature->result) : NULL;
	if (!result || (result->kind == TYPE_POINTER && is_open(code, result->target)))
		code->values[code->arch->result] = (struct value){ RESULT, NO_TYPE, number };
	else if (result->kind == TYPE_POINTER)
		code->values[code->arch->result] = declared(code, result->target, NO_MEMBER);
}

/* True if the address is in another part of the function that is read. */
static bool is_in_other_part(const struct code *code, uint64_t address)
{
	const uint64_t entry = code->function->entry;
	const struct signature *own = find_signature(code, entry);
	const struct part *parts = code->parts.items;
	size_t behind = BISECT(i, 0, code->parts.count, parts[i].start <= address);

	return (own && address - entry < own->end - entry) ||
	       (behind && parts[behind - 1].entry == entry && address < parts[behind - 1].end);
}

/* True if a jump leads to another function, directly or through a hook. */
static bool leaves_function(struct code *code, const cs_x86_op *to)
{
	const uint64_t start = code->function->start, size = code->function->end - start;

	if (to->type == X86_OP_IMM)
		return (uint64_t)to->imm - start >= size &&
		       !is_in_other_part(code, (uint64_t)to->imm);
	return code->input->listener && find_callee(code) - start >= size && find_hook(code, to);
}

/* The next instruction is not reached from here. */
static void read_jump(struct code *code)
{
	const cs_x86_op *to = code->instruction->detail->x86.operands;
	const struct signature *signature =
		code->instruction->id == X86_INS_JMP && to->type == X86_OP_IMM
			? find_signature(code, (uint64_t)to->imm)
			: NULL;

	if (signature)
		pass_arguments(code, signature);
	if (code->instruction->id == X86_INS_RET)
		read_return(code, &code->values[code->arch->result]);
	else if (leaves_function(code, to))
		read_return(code, &(struct value){ RESULT, NO_TYPE, tell_call(code) });
	memset(code->values, 0, sizeof(code->values));
}

static void forget_written(struct code *code)
{
	uint8_t count;
	cs_regs list;

	if (!disassembler_written(code->disassembler, list, &count)) {
		memset(code->values, 0, sizeof(code->values));
		return;
	}
	for (size_t i = 0; i < count; i++) {
		uint8_t number = code->arch->disassembled(list[i]);

		if (number < REGISTERS)
			code->values[number].holds = NOTHING;
	}
}

static void read_instruction(struct code *code)
{
	const cs_x86 *x86 = &code->instruction->detail->x86;
	const cs_x86_op *to = &x86->operands[0], *from = &x86->operands[1];
	uint8_t to_register = whole_register(code, to), from_register = whole_register(code, from);

	switch (code->instruction->id) {
	case X86_INS_MOV:
		if (to_register != NOT_A_REGISTER && from_register != NOT_A_REGISTER)
			code->values[to_register] = value_of(code, from_register);
		else if (to_register != NOT_A_REGISTER && from->type == X86_OP_MEM)
			read_load(code, to_register, from);
		else if (from_register != NOT_A_REGISTER && to->type == X86_OP_MEM)
			read_store(code, to, from_register);
		else
			forget_written(code);
		break;
	case X86_INS_LEA:
		if (to_register != NOT_A_REGISTER)
			read_address(code, to_register, from);
		break;
	case X86_INS_ADD:
		if (to_register != NOT_A_REGISTER)
			read_sum(code, to_register, from);
		break;
	case X86_INS_CALL:
		read_call(code);
		break;
	case X86_INS_JMP:
	case X86_INS_RET:
		read_jump(code);
		break;
	case X86_INS_CMP:
	case X86_INS_TEST:
		break;
	default:
		forget_written(code);
		break;
	}
}

/* Variables whose addresses of code begin here are what their registers hold. */
static void begin_locals(struct code *code, uint64_t address)
{
	for (; code->next_local < code->function->local_count; code->next_local++) {
		const struct function_local *local = &code->function->locals[code->next_local];
		const struct data_type *type = type_of(code, local->type);

		if (local->start > address)
			break;
		if (local->in >= REGISTERS || type->kind != TYPE_POINTER)
			continue;
		if (is_open(code, type->target)) {
			if (local->start == address)
				note_bytes(code, &code->values[local->in], type->target);
			continue;
		}
		if (local->start == address)
			note_use(code, &code->values[local->in], type->target);
		if (local->end > address) {
			memmove(&code->active[local->in][1], code->active[local->in],
				sizeof(code->active[0]) - sizeof(code->active[0][0]));
			code->active[local->in][0] = local;
			if (local->start == address)
				code->values[local->in].holds = NOTHING;
		}
	}
}

static bool read_function(void *data, const struct function *function)
{
	struct code *code = data;
	uint64_t address = function->start, size = function->end - function->start;
	const uint8_t *bytes;
	size_t left;

	if (size > MOST_CODE)
		return true;
	code->code_read += size;
	if (code->code_read > MOST_CODE_IN_ALL)
		return false;
	if (++code->read % 64 == 0 && !progress_step(code->input->progress, 0)) {
		code->error = error_create(ERROR_INTERRUPTED, "interrupted");
		return false;
	}
	code->error = array_resize(&code->bytes, size);
	if (code->error)
		return false;
	if (!image_read(code->input->image, address, code->bytes.items, size))
		return true;
	code->function = function;
	code->next_local = 0;
	memset(code->active, 0, sizeof(code->active));
	memset(code->values, 0, sizeof(code->values));
	bytes = code->bytes.items;
	left = size;
	if (code->input->listener)
		code->error = numbers_begin(&code->numbers, bytes, address, left,
					    function->start == function->entry);
	while (!code->error && left) {
		if (code->input->listener)
			numbers_arrive(&code->numbers, address);
		begin_locals(code, address);
		if (!disassembler_next(code->disassembler, &bytes, &left, &address))
			break;
		read_instruction(code);
		if (code->input->listener)
			numbers_read(&code->numbers);
	}
	return !code->error;
}

static bool add_signature(void *data, const struct function *function)
{
	struct code *code = data;
	const struct part part = { function->start, function->end, function->entry };
	struct signature signature = { .entry = function->entry,
				       .end = function->end,
				       .result = function->result,
				       .is_of_library = function->is_of_library };

	memcpy(signature.parameters, function->parameters, sizeof(signature.parameters));
	if (function->start != function->entry)
		code->error = array_append(&code->parts, part);
	else if (!find_signature(code, function->entry))
		code->error = table_append(&code->signatures, function->entry, signature);
	return !code->error;
}

DEFINE_COMPARE(compare_statics, struct type_variable, ASCENDING(address), DESCENDING(size))
DEFINE_COMPARE(compare_parts, struct part, ASCENDING(start))
DEFINE_COMPARE(compare_casts, struct cast, ASCENDING(place), ASCENDING(type))

static struct error *gather_statics(struct code *code)
{
	const struct type_variable *variables = type_variables(code->input->types);
	struct error *error = NULL;

	for (size_t i = 0; !error && i < type_variable_count(code->input->types); i++)
		if (!variables[i].is_thread_local)
			error = array_append(&code->statics, variables[i]);
	array_sort(&code->statics, compare_statics);
	return error;
}

static void code_deinit(struct code *code)
{
	if (code->disassembler)
		disassembler_destroy(code->disassembler);
	tables_release(&code->signatures, &code->results);
	arrays_release(&code->parts, &code->statics, &code->bytes, &code->numbers.targets);
}
DEFINE_DEINIT(code_deinit, struct code)

/* Without capstone, there is no disassembler. */
static struct error *open_disassembler(struct code *code)
{
	struct error *error = disassembler_create(code->arch, &code->disassembler);

	if (error && error_code(error) == ERROR_NOT_SUPPORTED) {
		error_destroy(error);
		return NULL;
	}
	if (error)
		return error;
	code->instruction = disassembler_instruction(code->disassembler);
	code->numbers.arch = code->arch;
	code->numbers.disassembler = code->disassembler;
	return NULL;
}

static struct error *visit_functions(struct code *code, bool wants_locals, function_visit visit)
{
	const struct casts_input *input = code->input;
	struct error *error = debug_visit_functions(input->debug, input->types, input->account,
						    wants_locals, visit, code);

	return error_first(error, code->error);
}

static struct error *read_all(struct code *code)
{
	TRY(gather_statics(code));
	TRY(visit_functions(code, false, add_signature));
	array_sort(&code->parts, compare_parts);
	if (code->signatures.count == 0)
		return NULL;
	TRY(open_disassembler(code));
	return code->disassembler ? visit_functions(code, true, read_function) : NULL;
}

static struct error *read_casts(struct casts *casts, const struct casts_input *input)
{
	_cleanup_(code_deinit) struct code code = {
		.input = input,
		.casts = casts,
		.arch = input->image->arch,
	};
	struct error *error = NULL;

	arrays_use(input->account, &code.signatures, &code.parts, &code.statics, &code.results,
		   &code.bytes, &code.numbers.targets);
	TRY(read_all(&code));
	casts->was_read = code.disassembler;
	array_sort(&casts->all, compare_casts);
	for (size_t i = 0; !error && i < code.results.count; i++)
		error = array_append(&casts->results, code.results.items[i]);
	return error;
}

/* Listeners keep the results that they listen for. */
struct error *casts_read(struct casts *casts, const struct casts_input *input)
{
	const struct arch *arch = input->image->arch;
	struct kept_entry entry;

	arrays_use(input->account, &casts->all, &casts->results, &casts->followed);
	if (arch->disassembler != CS_ARCH_X86 || !arch->disassembled)
		return NULL;
	if (input->listener)
		return read_casts(casts, input);
	entry = kept_entry_of("casts", input->debug, input->types, false);
	if (kept_casts_load(&entry, casts))
		return NULL;
	TRY(read_casts(casts, input));
	if (casts->was_read)
		kept_casts_save(&entry, casts);
	return NULL;
}

void casts_deinit(struct casts *casts)
{
	tables_release(&casts->all, &casts->followed);
	array_release(&casts->results);
}

size_t casts_of(const struct casts *casts, uint32_t place, const struct cast **ret)
{
	size_t low = 0, high = casts->all.count, end;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (casts->all.items[middle].place < place)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < casts->all.count && casts->all.items[end].place == place; end++)
		;
	if (end == low)
		return 0;
	*ret = &casts->all.items[low];
	return end - low;
}
