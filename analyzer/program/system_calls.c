#include "analyzer/program/system_calls.h"

#include "analyzer/program/call_frames.h"
#include "analyzer/program/symbols.h"

#include <string.h>
#include <sys/syscall.h>

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
static bool follows_system_call(const struct image *image, const struct module_list *modules,
				uint64_t address)
{
	const struct module *module = module_list_find(modules, address);
	uint8_t bytes[2];

	if (!is_c_library(module))
		return false;
	if (!image_read(image, address - sizeof(bytes), bytes, sizeof(bytes)))
		return module->file && module->file->partial;
	return bytes[0] == 0x0f && bytes[1] == 0x05;
}

/* Those that calls preserve; the others are dead where the frame called. */
static struct user_regs_struct preserved(const struct call_frame *frame)
{
	return (struct user_regs_struct){
		.rbx = frame->registers[CALL_RBX],
		.rbp = frame->registers[CALL_RBP],
		.r12 = frame->registers[CALL_R12],
		.r13 = frame->registers[CALL_R13],
		.r14 = frame->registers[CALL_R14],
		.r15 = frame->registers[CALL_R15],
	};
}

/*
 * Leave the C library's frames up to the outermost that never returns. Others may be between them
 * and the program's, as those of error().
 */
static void leave(const struct image *image, const struct module_list *modules,
		  struct thread *thread)
{
	enum { STARTS_MAIN = 1, EXITS = 2 | 4 };
	static const char *const names[] = { "__libc_start_main", "exit", "quick_exit", NULL };
	struct call_frame frame = call_frame_of(&thread->state->registers);

	for (size_t i = 0; i < MOST_FRAMES; i++) {
		uint64_t place = call_frame_place(&frame);
		const struct module *module = module_list_find(modules, place);
		uint64_t function, bottom = frame.registers[CALL_RSP];
		enum call_step step;

		if (!is_c_library(module))
			return;
		function = module_functions_at(module, place, names);
		step = call_frame_return(image, module, &frame);
		if (step == CALL_UNKNOWN)
			return;
		if (step == CALL_OUTERMOST || function & STARTS_MAIN) {
			thread->registers = (struct user_regs_struct){ 0 };
			thread->live = step == CALL_OUTERMOST ? bottom : frame.registers[CALL_RSP];
			return;
		}
		/* The first one asked the system itself. */
		if (i > 0 && !(function & EXITS))
			continue;
		thread->registers = preserved(&frame);
		thread->live = frame.registers[CALL_RSP];
	}
}

void thread_find_use(const struct image *image, const struct module_list *modules,
		     struct thread *thread)
{
	const struct user_regs_struct *registers = &thread->state->registers;
	unsigned long long call = registers->orig_rax;
	bool waits = (int64_t)call >= 0 && follows_system_call(image, modules, registers->rip);

	thread->vectors_used = !waits;
	thread->registers = *registers;
	if (call != SYS_exit_group && call != SYS_exit)
		return;
	thread->vectors_used = false;
	thread->registers = (struct user_regs_struct){ 0 };
	if (waits)
		leave(image, modules, thread);
}
