#include "analyzer/program/program.h"

#include "analyzer/program/modules.h"
#include "analyzer/program/stacks.h"

struct program {
	const struct image *image;
	struct module_list modules;
	struct stack_list stacks;
	struct thread *threads;
	size_t thread_count;
};

static struct error *read_threads(struct program *program)
{
	size_t count = image_thread_count(program->image);

	program->threads = calloc(count + 1, sizeof(*program->threads));
	if (!program->threads)
		return &error_no_memory;
	for (size_t i = 0; i < count; i++) {
		const struct image_thread *state =
			image_thread(program->image, i);

		program->threads[i] = (struct thread){
			.id = state->id,
			.stack_pointer = state->registers.rsp,
			.thread_pointer = state->registers.fs_base,
			.stack = NO_STACK,
			.state = state,
		};
	}
	program->thread_count = count;
	return NULL;
}

/*
 * Whether all above a thread's stack pointer is zero. It cannot be: frames
 * hold at least where to return to.
 */
static bool is_stack_empty(const struct program *program,
			   const struct thread *thread)
{
	enum { MOST = 1 << 16 };
	uint64_t size;
	const uint8_t *bytes =
		image_bytes(program->image, thread->stack_pointer, &size);

	if (!bytes)
		return false;
	for (uint64_t i = 0; i < size && i < MOST; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

static void check_stacks(const struct program *program,
			 struct findings *findings)
{
	for (size_t i = 0; i < program->thread_count; i++)
		if (is_stack_empty(program, &program->threads[i]))
			findings_add(findings, FINDING_INCOMPLETE,
				     "the stack of thread %u is all zeros in "
				     "the core: whoever wrote the core could "
				     "not read it (gdb before 15 cannot where "
				     "glibc 2.42 or later made it). What only "
				     "it refers to looks leaked",
				     program->threads[i].id);
}

struct error *program_create(const struct image *image,
			     struct findings *findings, struct program **ret)
{
	_cleanup_(program_destroy) struct program *program =
		calloc(1, sizeof(*program));
	struct error *error;

	if (!program)
		return &error_no_memory;
	program->image = image;
	error = module_list_init(&program->modules, image);
	if (!error)
		error = read_threads(program);
	if (!error)
		error = stack_list_init(&program->stacks, image,
					&program->modules, program->threads,
					program->thread_count);
	if (error)
		return error;
	if (program->thread_count == 0)
		findings_add(findings, FINDING_INCOMPLETE,
			     "the core tells of no thread: what only registers "
			     "refer to looks leaked, and all of the stacks "
			     "counts as in use");
	check_stacks(program, findings);
	*ret = take(program);
	return NULL;
}

void program_destroy(struct program *program)
{
	module_list_deinit(&program->modules);
	stack_list_deinit(&program->stacks);
	free(program->threads);
	free(program);
}

size_t program_module_count(const struct program *program)
{
	return program->modules.count;
}

const struct module *program_module(const struct program *program,
				    size_t number)
{
	return &program->modules.modules[number];
}

const struct module *program_find_module(const struct program *program,
					 uint64_t address)
{
	for (size_t i = 0; i < program->modules.count; i++) {
		const struct module *module = &program->modules.modules[i];

		if (address >= module->start && address < module->end)
			return module;
	}
	return NULL;
}

size_t program_thread_count(const struct program *program)
{
	return program->thread_count;
}

const struct thread *program_thread(const struct program *program,
				    size_t number)
{
	return &program->threads[number];
}

size_t program_stack_count(const struct program *program)
{
	return program->stacks.count;
}

const struct stack *program_stack(const struct program *program, size_t number)
{
	return &program->stacks.stacks[number];
}

const struct stack *program_find_stack(const struct program *program,
				       uint64_t address)
{
	for (size_t i = 0; i < program->stacks.count; i++) {
		const struct stack *stack = &program->stacks.stacks[i];

		if (address >= stack->start && address < stack->end)
			return stack;
	}
	return NULL;
}

const char *stack_kind_name(enum stack_kind kind)
{
	switch (kind) {
	case STACK_MAIN:
		return "main";
	case STACK_THREAD:
		return "thread";
	case STACK_FINISHED:
		return "finished thread";
	}
	return "unknown";
}
