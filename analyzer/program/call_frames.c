#include "analyzer/program/call_frames.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <string.h>

struct call_frame call_frame_of(const struct arch *arch, const uint64_t *registers)
{
	struct call_frame frame = {
		.instruction = registers[arch->instruction],
		.stack_pointer = registers[arch->stack_pointer],
		.exact = true,
	};

	arch_unwound(arch, registers, frame.registers);
	return frame;
}

uint64_t call_frame_place(const struct call_frame *frame)
{
	/* A call that never returns can be the last instruction. */
	return frame->instruction - (frame->exact ? 0 : 1);
}

/* Where an expression is computed. */
struct machine {
	const struct image *image;
	const struct call_frame *frame;
	uint64_t address; /* the canonical frame address */
	uint64_t stack[8];
	size_t depth;
};

static bool push(struct machine *machine, uint64_t value)
{
	if (machine->depth == sizeof(machine->stack) / sizeof(uint64_t))
		return false;
	machine->stack[machine->depth++] = value;
	return true;
}

static bool push_register(struct machine *machine, uint64_t number, uint64_t offset)
{
	return number < MOST_UNWOUND && push(machine, machine->frame->registers[number] + offset);
}

/* Of all there are, those that compilers and glibc's sources use. */
static bool operate(struct machine *machine, const Dwarf_Op *operation)
{
	uint64_t *top;

	if (operation->atom >= DW_OP_breg0 && operation->atom <= DW_OP_breg31)
		return push_register(machine, operation->atom - DW_OP_breg0, operation->number);
	if (operation->atom == DW_OP_bregx)
		return push_register(machine, operation->number, operation->number2);
	if (operation->atom == DW_OP_call_frame_cfa)
		return push(machine, machine->address);
	if (machine->depth == 0)
		return false;
	top = &machine->stack[machine->depth - 1];
	if (operation->atom == DW_OP_plus_uconst) {
		*top += operation->number;
		return true;
	}
	return operation->atom == DW_OP_deref && image_read_u64(machine->image, *top, top);
}

/* A rule for a register tells where its value stands, or the value itself. */
static bool compute(struct machine *machine, const Dwarf_Op *operations, size_t count,
		    bool location, uint64_t *ret)
{
	if (count > 0 && operations[count - 1].atom == DW_OP_stack_value) {
		location = false;
		count--;
	}
	machine->depth = 0;
	for (size_t i = 0; i < count; i++)
		if (!operate(machine, &operations[i]))
			return false;
	if (machine->depth == 0)
		return false;
	*ret = machine->stack[machine->depth - 1];
	return !location || image_read_u64(machine->image, *ret, ret);
}

/*
 * The caller's register. What no rule is for is as it was: libdw says so of all that x86-64 calls
 * preserve but one. The outermost function returns nowhere.
 */
static bool restore(struct machine *machine, Dwarf_Frame *rules, uint8_t number, uint64_t *ret)
{
	Dwarf_Op storage[3], *operations;
	size_t count;

	if (dwarf_frame_register(rules, number, storage, &operations, &count))
		return false;
	*ret = 0;
	if (count > 0)
		return compute(machine, operations, count, true, ret);
	if (number != image_arch(machine->image)->unwound_return)
		*ret = machine->frame->registers[number];
	return true;
}

static enum call_step apply(const struct image *image, Dwarf_Frame *rules, struct call_frame *frame)
{
	const struct arch *arch = image_arch(image);
	uint8_t stack_pointer = arch_unwound_stack_pointer(arch);
	struct machine machine = { .image = image, .frame = frame };
	struct call_frame caller = { .exact = false };
	Dwarf_Op *operations;
	size_t count;

	if (dwarf_frame_cfa(rules, &operations, &count) ||
	    !compute(&machine, operations, count, false, &machine.address) ||
	    !restore(&machine, rules, arch->unwound_return, &caller.instruction))
		return CALL_UNKNOWN;
	for (unsigned int i = 0; i < arch->register_count; i++) {
		uint8_t number = arch->registers[i].unwound;

		if (arch->registers[i].preserved &&
		    !restore(&machine, rules, number, &caller.registers[number]))
			return CALL_UNKNOWN;
	}
	if (caller.instruction == 0)
		return CALL_OUTERMOST;
	caller.registers[arch->unwound_return] = caller.instruction;
	caller.stack_pointer = machine.address;
	/* A signal's handler returns to the instruction itself. */
	dwarf_frame_info(rules, NULL, NULL, &caller.exact);
	if (caller.exact && !restore(&machine, rules, stack_pointer, &caller.stack_pointer))
		return CALL_UNKNOWN;
	caller.registers[stack_pointer] = caller.stack_pointer;
	*frame = caller;
	return CALL_RETURNS;
}

enum call_step call_frame_return(const struct image *image, const struct module *module,
				 struct call_frame *frame)
{
	const struct image_file *file = module->file;
	enum call_step step = CALL_UNKNOWN;
	Dwarf_Frame *rules;
	Dwarf_CFI *cfi;
	Elf *elf;

	if (!file || elf_version(EV_CURRENT) == EV_NONE)
		return CALL_UNKNOWN;
	elf = elf_memory((char *)(uintptr_t)file->bytes, file->size);
	cfi = elf ? dwarf_getcfi_elf(elf) : NULL;
	if (cfi && dwarf_cfi_addrframe(cfi, call_frame_place(frame) - module->bias, &rules) == 0) {
		step = apply(image, rules, frame);
		free(rules);
	}
	if (cfi)
		dwarf_cfi_end(cfi);
	elf_end(elf);
	return step;
}
