/*
 * Threads inside of a system call that the C library made: what of their registers and their stack
 * the program still uses.
 *
 * No function keeps vector registers over a call, and no code of glibc has any in use over a system
 * call of its own (all of 2.31, 2.36, 2.41 and 2.43 was looked at): while a thread waits in one,
 * they hold nothing.
 *
 * A thread that ends, or ends the process, never returns. Up to exit() the frames on its stack are
 * glibc's own, full of what was left there before. What counts is what its caller has: the stack
 * above, and the registers that calls preserve. Once main() has returned, it has no frame any more.
 *
 *	| _exit | handlers | exit | caller ... main | its caller |
 *	| dead                    | live            | live until main returns |
 *
 * Frames of the program inside of exit(), as those of a handler, are not left out, nor is what is
 * above them.
 */
#include "analyzer/program/program_parts.h"
#include "analyzer/program/symbols.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <string.h>

struct call_frame {
	/* As a function left them, by their DWARF numbers; 0 where not known. */
	uint64_t registers[MOST_UNWOUND];
	uint64_t instruction, stack_pointer;
	/* The next instruction; otherwise where the function called. */
	bool exact;
};

enum call_step {
	CALL_UNKNOWN,	/* the module has no rule for it */
	CALL_OUTERMOST, /* nothing called it */
	CALL_RETURNS,	/* the frame is that of the caller now */
};

static struct call_frame call_frame_of(const struct arch *arch, const uint64_t *registers)
{
	struct call_frame frame = {
		.instruction = registers[arch->instruction],
		.stack_pointer = registers[arch->stack_pointer],
		.exact = true,
	};

	arch_unwound(arch, registers, frame.registers);
	return frame;
}

/* An address in the function that the frame is of. */
static uint64_t call_frame_place(const struct call_frame *frame)
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

/*
 * Step to the caller of a function of module, by its .eh_frame, which stripped modules have, too.
 * No session of libdwfl: this is for what must be known of any dump.
 */
static enum call_step call_frame_return(const struct image *image, const struct module *module,
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

/* A call from exit() to the system is fewer frames. */
enum { MOST_FRAMES = 64 };

/* The C library, in two files before 2.34. */
static bool is_c_library(const struct module *module)
{
	return module &&
	       (module_is_libc(module) || strncmp(module_name(module), "libpthread", 10) == 0);
}

/*
 * Whether the instruction before address is a system call of the C library. A core that is to be
 * read elsewhere has no code, but is heapcore's own: the number of the call is enough, which others
 * may not have written.
 */
static bool follows_system_call(const struct program *program, uint64_t address)
{
	const struct module *module = program_find_module(program, address);
	const struct arch *arch = image_arch(program->image);
	uint8_t bytes[sizeof(arch->call_code)];

	if (!is_c_library(module))
		return false;
	if (!image_read(program->image, address - arch->call_code_size, bytes,
			arch->call_code_size))
		return module->file && module->file->partial;
	return memcmp(bytes, arch->call_code, arch->call_code_size) == 0;
}

/* Those that calls preserve; the others are dead where the frame called. */
static void keep_preserved(const struct arch *arch, const struct call_frame *frame,
			   struct thread *thread)
{
	for (unsigned int i = 0; i < arch->register_count; i++)
		if (arch->registers[i].preserved)
			thread->registers[i] = frame->registers[arch->registers[i].unwound];
}

/*
 * Leave the C library's frames up to the outermost that never returns. Others may be between them
 * and the program's, as those of error().
 */
static void leave(const struct program *program, struct thread *thread)
{
	enum { STARTS_MAIN = 1, EXITS = 2 | 4 };
	static const char *const names[] = { "__libc_start_main", "exit", "quick_exit", NULL };
	const struct arch *arch = image_arch(program->image);
	struct call_frame frame = call_frame_of(arch, thread->state->registers);

	for (size_t i = 0; i < MOST_FRAMES; i++) {
		uint64_t place = call_frame_place(&frame);
		const struct module *module = program_find_module(program, place);
		uint64_t function, bottom = frame.stack_pointer;
		enum call_step step;

		if (!is_c_library(module))
			return;
		function = module_functions_at(module, place, names);
		step = call_frame_return(program->image, module, &frame);
		if (step == CALL_UNKNOWN)
			return;
		if (step == CALL_OUTERMOST || function & STARTS_MAIN) {
			memset(thread->registers, 0, sizeof(thread->registers));
			thread->live = step == CALL_OUTERMOST ? bottom : frame.stack_pointer;
			return;
		}
		/* The first one asked the system itself. */
		if (i > 0 && !(function & EXITS))
			continue;
		keep_preserved(arch, &frame, thread);
		thread->live = frame.stack_pointer;
	}
}

void thread_find_use(const struct program *program, struct thread *thread)
{
	bool waits = thread->system_call != SYSTEM_CALL_NONE &&
		     follows_system_call(program, thread->instruction);

	thread->vectors_used = !waits;
	if (thread->system_call != SYSTEM_CALL_EXIT) {
		memcpy(thread->registers, thread->state->registers, sizeof(thread->registers));
		return;
	}
	thread->vectors_used = false;
	if (waits)
		leave(program, thread);
}
