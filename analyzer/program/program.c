#include "analyzer/program/program.h"

#include "analyzer/base/list.h"
#include "analyzer/program/missing.h"
#include "analyzer/program/modules.h"
#include "analyzer/program/stacks.h"
#include "analyzer/program/system_calls.h"
#include "analyzer/program/thread_pointers.h"

#include <elf.h>

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
	const struct arch *arch = image_arch(program->image);

	program->threads = calloc(count + 1, sizeof(*program->threads));
	if (!program->threads)
		return &error_no_memory;
	for (size_t i = 0; i < count; i++) {
		const struct image_thread *state = image_thread(program->image, i);

		program->threads[i] = (struct thread){
			.id = state->id,
			.instruction = state->registers[arch->instruction],
			.system_call = arch_system_call(arch, state->registers[arch->system_call]),
			.stack_pointer = state->registers[arch->stack_pointer],
			.used_from = state->registers[arch->stack_pointer] - arch->red_zone,
			.thread_pointer = state->thread_pointer,
			.stack = NO_STACK,
			.state = state,
		};
		thread_find_use(program->image, &program->modules, &program->threads[i]);
	}
	program->thread_count = count;
	thread_pointers_check(program->image, program->threads, count);
	return NULL;
}

struct error *program_create(const struct image *image, struct findings *findings,
			     struct program **ret)
{
	_cleanup_(program_destroy) struct program *program = calloc(1, sizeof(*program));
	struct error *error;

	if (!program)
		return &error_no_memory;
	program->image = image;
	error = module_list_init(&program->modules, image);
	if (!error)
		error = read_threads(program);
	if (!error)
		error = stack_list_init(&program->stacks, image, &program->modules,
					program->threads, program->thread_count);
	if (error)
		return error;
	missing_report(image, program, findings);
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

const struct module *program_module(const struct program *program, size_t number)
{
	return &program->modules.modules[number];
}

const struct module *program_find_module(const struct program *program, uint64_t address)
{
	return module_list_find(&program->modules, address);
}

bool program_knows_modules(const struct program *program)
{
	const struct image *image = program->image;

	return image_mapping_count(image) > 0 ||
	       (image_auxiliary(image, AT_PHDR, 0) != 0 && image_auxiliary(image, AT_BASE, 0) == 0);
}

size_t program_thread_count(const struct program *program)
{
	return program->thread_count;
}

const struct thread *program_thread(const struct program *program, size_t number)
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

const struct stack *program_find_stack(const struct program *program, uint64_t address)
{
	const struct stack *stacks = program->stacks.stacks;
	size_t above = LIST_ABOVE(stacks, program->stacks.count, start, address);

	return above > 0 && address < stacks[above - 1].end ? &stacks[above - 1] : NULL;
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
	case STACK_VANISHED:
		return "vanished thread";
	}
	return "unknown";
}
