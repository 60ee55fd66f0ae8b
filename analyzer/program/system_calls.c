/*
 * Threads inside of a system call that the C library made: what of their registers and their stack
 * the program still uses, and which memory the kernel is about to fill.
 *
 * No function keeps vector registers over a call, and no code of glibc has any in use over a system
 * call of its own (checked in 2.31, 2.36, 2.41 and 2.43): while a thread waits in one,
 * they hold nothing.
 *
 * A thread that ends, or ends the process, by a signal, too, never returns. Up to exit() or abort()
 * the frames on its stack are glibc's own, full of what was left there before. What counts is what
 *its caller has: the stack above, and the registers that calls preserve. Once main() has returned,
 *it has no frame any more.
 *
 *	| _exit | handlers | exit | caller ... main | its caller |
 *	| dead                    | live            | live until main returns |
 *
 * Frames of the program inside of exit(), as those of a handler, are not left out, nor is what is
 * above them.
 */
#include "analyzer/program/expression.h"
#include "analyzer/program/program_parts.h"
#include "analyzer/program/symbols.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <string.h>

struct call_frame {
	/* Registers as a function left them, by their DWARF numbers; 0 where unknown. */
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

/* An address in the frame's function. */
static uint64_t call_frame_place(const struct call_frame *frame)
{
	/* A call that never returns can be the last instruction. */
	return frame->instruction - (frame->exact ? 0 : 1);
}

/* A rule for a register says where its value stands, or the value itself. */
static bool compute(const struct expression_context *context, const Dwarf_Op *operations,
		    size_t count, bool location, uint64_t *ret)
{
	if (count > 0 && operations[count - 1].atom == DW_OP_stack_value) {
		location = false;
		count--;
	}
	return expression_evaluate(context, operations, count, ret) &&
	       (!location || image_read_word(context->image, *ret, ret));
}

/*
 * The caller's register. One without a rule is as it was: libdw says so of all that x86-64 calls
 * preserve but one. The outermost function returns nowhere.
 */
static bool restore(const struct expression_context *context, Dwarf_Frame *rules, uint8_t number,
		    uint64_t *ret)
{
	const struct arch *arch = context->image->arch;
	Dwarf_Op storage[3], *operations;
	size_t count;

	if (dwarf_frame_register(rules, (int)arch_dwarf_number(arch, number), storage, &operations,
				 &count))
		return false;
	*ret = 0;
	if (count > 0)
		return compute(context, operations, count, true, ret);
	/* It has no value, not even that of the register; or it is the register's. */
	if (number != arch->unwound_return || (arch->return_is_register && !operations))
		*ret = context->registers[number];
	return true;
}

static enum call_step apply(const struct image *image, Dwarf_Frame *rules, struct call_frame *frame)
{
	const struct arch *arch = image->arch;
	uint8_t stack_pointer = arch_unwound_stack_pointer(arch);
	struct expression_context context = { image, frame->registers, .known = UINT64_MAX };
	struct call_frame caller = { .exact = false };
	Dwarf_Op *operations;
	size_t count;

	if (dwarf_frame_cfa(rules, &operations, &count) ||
	    !compute(&context, operations, count, false, &context.frame_address) ||
	    !restore(&context, rules, arch->unwound_return, &caller.instruction))
		return CALL_UNKNOWN;
	for (unsigned int i = 0; i < arch->register_count; i++) {
		uint8_t number = arch->registers[i].unwound;

		if (arch->registers[i].preserved &&
		    !restore(&context, rules, number, &caller.registers[number]))
			return CALL_UNKNOWN;
	}
	if (caller.instruction == 0)
		return CALL_OUTERMOST;
	caller.registers[arch->unwound_return] = caller.instruction;
	caller.stack_pointer = context.frame_address;
	/* A signal's handler returns to the instruction itself. */
	dwarf_frame_info(rules, NULL, NULL, &caller.exact);
	if (caller.exact && !restore(&context, rules, stack_pointer, &caller.stack_pointer))
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
	       (module_is_libc(module) || strncmp(module_file_name(module), "libpthread", 10) == 0);
}

static bool is_call(const struct image *image, uint64_t address)
{
	const struct arch *arch = image->arch;
	uint8_t bytes[sizeof(arch->call_codes[0])];

	if (!image_read(image, address, bytes, arch->call_code_size))
		return false;
	for (size_t i = 0; i < arch->call_code_count; i++)
		if (memcmp(bytes, arch->call_codes[i], arch->call_code_size) == 0)
			return true;
	return false;
}

bool thread_is_at_call(const struct image *image, uint64_t instruction)
{
	const struct arch *arch = image->arch;

	return is_call(image, instruction - arch->call_code_size) ||
	       (arch->calls_by_code && is_call(image, instruction));
}

/*
 * True if the thread is in a system call of the C library, right behind the instruction. A core to
 * be read elsewhere has no code, but is heapcore's own, so the number of the call is enough; other
 * tools may not have written it.
 */
static bool follows_system_call(const struct program *program, uint64_t address)
{
	const struct module *module = program_find_module(program, address);

	uint64_t size;

	if (!is_c_library(module))
		return false;
	if (thread_is_at_call(program->image, address))
		return true;
	return module->file && module->file->partial &&
	       !image_bytes(program->image, address - program->image->arch->call_code_size, &size);
}

/* Keep the registers that calls preserve; the others are dead in the calling frame. */
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
	enum { STARTS_MAIN = 1 };
	/* All others do not return, as the thread ends in them. */
	static const char *const names[] = {
		"__libc_start_main", "exit",	      "quick_exit", "abort", "raise",
		"pthread_kill",	     "__assert_fail", "daemon",	    NULL
	};
	const struct arch *arch = program->image->arch;
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
		frame.instruction = program_unsigned(program, frame.instruction);
		if (step == CALL_OUTERMOST || function & STARTS_MAIN) {
			memset(thread->registers, 0, sizeof(thread->registers));
			thread->live = step == CALL_OUTERMOST ? bottom : frame.stack_pointer;
			return;
		}
		/* The first one asked the system itself. */
		if (i > 0 && !(function & ~(uint64_t)STARTS_MAIN))
			continue;
		keep_preserved(arch, &frame, thread);
		thread->live = frame.stack_pointer;
	}
}

/* On i386, libc calls a function of the kernel's, in the vdso, which makes the call. */
static bool waits_in_vdso(const struct program *program, const struct thread *thread)
{
	const struct module *module = program_find_module(program, thread->instruction);

	return thread->system_call != SYSTEM_CALL_NONE && module &&
	       strcmp(module->path, "[vdso]") == 0 &&
	       thread_is_at_call(program->image, thread->instruction);
}

/* True if the thread is ending the process by a signal. */
static bool kills(const struct image *image, const struct thread *thread)
{
	return thread->system_call == SYSTEM_CALL_KILL && thread->state == image->threads &&
	       image_fatal_signal(image) && thread->state->signal_sent &&
	       !image_signal_is_foreign(image, thread->state);
}

void thread_find_use(const struct program *program, struct thread *thread)
{
	const struct arch *arch = program->image->arch;
	bool waits = thread->system_call != SYSTEM_CALL_NONE &&
		     follows_system_call(program, thread->instruction);
	bool ends =
		thread->system_call == SYSTEM_CALL_EXIT || (waits && kills(program->image, thread));

	thread->vectors_used = !waits && !waits_in_vdso(program, thread);
	if (!ends) {
		memcpy(thread->registers, thread->state->registers, sizeof(thread->registers));
		/*
		 * Registers that hold the thread pointer and the like are no references of the
		 * program.
		 */
		if (arch->thread_pointer_bias)
			thread->registers[arch->thread_pointer] -= arch->thread_pointer_bias;
		if (arch->module_pointer)
			thread->registers[arch->module_pointer] = 0;
		return;
	}
	thread->vectors_used = false;
	if (waits)
		leave(program, thread);
}

/* The bytes of each struct iovec of a row, which is { address, size }. */
static struct error *visit_vector(const struct image *image, uint64_t row, uint64_t count,
				  program_range_visitor *visit, void *data)
{
	enum { MOST_PARTS = 1024 /* IOV_MAX */ };
	const unsigned int word = image_word_size(image);
	uint64_t start, size;

	for (uint64_t i = 0; i < count && i < MOST_PARTS; i++) {
		if (!image_read_word(image, row + 2 * i * word, &start) ||
		    !image_read_word(image, row + (2 * i + 1) * word, &size))
			return NULL;
		TRY(visit(data, start, size));
	}
	return NULL;
}

/* struct msghdr: | name | size of it | struct iovec * | their count | ... |. */
static struct error *visit_message(const struct image *image, uint64_t message,
				   program_range_visitor *visit, void *data)
{
	const unsigned int word = image_word_size(image);
	uint64_t row, count;

	return image_read_word(image, message + 2 * (uint64_t)word, &row) &&
			       image_read_word(image, message + 3 * (uint64_t)word, &count)
		       ? visit_vector(image, row, count, visit, data)
		       : NULL;
}

/*
 * True if the thread still waits in the call. After the call, the register holds a result that is
 * no error; if it is also the first argument's register, that is uncertain.
 */
static bool waits_for_result(const struct program *program, const struct thread *thread,
			     uint64_t result)
{
	return thread->system_call != SYSTEM_CALL_NONE &&
	       result >> (8 * image_word_size(program->image) - 1) & 1 &&
	       (!thread->vectors_used || thread_is_at_call(program->image, thread->instruction));
}

struct error *thread_visit_outputs(const struct program *program, const struct thread *thread,
				   program_range_visitor *visit, void *data)
{
	const struct arch *arch = program->image->arch;
	uint64_t registers[MOST_UNWOUND] = { 0 }, start, size;

	if (arch->parameters[0] == NOT_A_REGISTER)
		return NULL;
	arch_unwound(arch, thread->state->registers, registers);
	if (!waits_for_result(program, thread, registers[arch->result]))
		return NULL;
	start = registers[arch->parameters[1]];
	size = registers[arch->parameters[2]];
	switch (thread->system_call) {
	case SYSTEM_CALL_READ:
		return visit(data, start, size);
	case SYSTEM_CALL_EVENTS:
		return visit(data, start, (uint32_t)size * (uint64_t)arch->event_size);
	case SYSTEM_CALL_READV:
		return visit_vector(program->image, start, size, visit, data);
	case SYSTEM_CALL_RECVMSG:
		return visit_message(program->image, start, visit, data);
	default:
		return NULL;
	}
}
