#include "analyzer/program/system_calls.h"

#include "analyzer/program/call_frames.h"
#include "analyzer/program/symbols.h"

#include <string.h>

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
	const struct arch *arch = image_arch(image);
	uint8_t bytes[sizeof(arch->call_code)];

	if (!is_c_library(module))
		return false;
	if (!image_read(image, address - arch->call_code_size, bytes, arch->call_code_size))
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
static void leave(const struct image *image, const struct module_list *modules,
		  struct thread *thread)
{
	enum { STARTS_MAIN = 1, EXITS = 2 | 4 };
	static const char *const names[] = { "__libc_start_main", "exit", "quick_exit", NULL };
	const struct arch *arch = image_arch(image);
	struct call_frame frame = call_frame_of(arch, thread->state->registers);

	for (size_t i = 0; i < MOST_FRAMES; i++) {
		uint64_t place = call_frame_place(&frame);
		const struct module *module = module_list_find(modules, place);
		uint64_t function, bottom = frame.stack_pointer;
		enum call_step step;

		if (!is_c_library(module))
			return;
		function = module_functions_at(module, place, names);
		step = call_frame_return(image, module, &frame);
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

void thread_find_use(const struct image *image, const struct module_list *modules,
		     struct thread *thread)
{
	bool waits = thread->system_call != SYSTEM_CALL_NONE &&
		     follows_system_call(image, modules, thread->instruction);

	thread->vectors_used = !waits;
	if (thread->system_call != SYSTEM_CALL_EXIT) {
		memcpy(thread->registers, thread->state->registers, sizeof(thread->registers));
		return;
	}
	thread->vectors_used = false;
	if (waits)
		leave(image, modules, thread);
}
