#include "analyzer/program/program.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "analyzer/program/program_parts.h"
#include "analyzer/program/symbol_names.h"

#include <elf.h>

static enum system_call call_of(const struct image *image, const uint64_t *registers)
{
	const struct arch *arch = image->arch;

	if (arch->calls_by_code && !thread_is_at_call(image, registers[arch->instruction]))
		return SYSTEM_CALL_NONE;
	return arch_system_call(arch, registers[arch->system_call]);
}

static struct error *read_threads(struct program *program)
{
	size_t count = program->image->thread_count;
	const struct arch *arch = program->image->arch;

	program->threads = calloc(count + 1, sizeof(*program->threads));
	TRY_MEMORY(program->threads);
	for (size_t i = 0; i < count; i++) {
		const struct image_thread *state = &program->image->threads[i];

		program->threads[i] = (struct thread){
			.id = state->id,
			.instruction = state->registers[arch->instruction],
			.system_call = call_of(program->image, state->registers),
			.stack_pointer = state->registers[arch->stack_pointer],
			.used_from = state->registers[arch->stack_pointer] - arch->red_zone,
			.thread_pointer = state->thread_pointer,
			.stack = NO_STACK,
			.state = state,
		};
		thread_find_use(program, &program->threads[i]);
	}
	program->thread_count = count;
	program_check_thread_pointers(program);
	return NULL;
}

/* Some wait to be joined in any program; so many are lost. */
static void report_unjoined(const struct program *program, struct findings *findings)
{
	enum { MOST_WAITING = 16 };
	char mapped[NUMBER_SIZE];
	uint64_t bytes = 0;
	size_t count = 0;

	list_for_each(stack, program->stacks, program->stack_count) {
		if (stack->kind != STACK_UNJOINED)
			continue;
		count++;
		bytes += stack->end - stack->start;
	}
	if (count > MOST_WAITING)
		findings_add(
			findings, FINDING_NOTE,
			"%zu threads have ended and were neither joined nor detached: their stacks, %s of addresses, are never used again",
			count, in_largest_unit(bytes, mapped));
}

struct error *program_create(const struct image *image, struct findings *findings,
			     struct program **ret)
{
	_cleanup_(program_destroy) struct program *program = calloc(1, sizeof(*program));

	TRY_MEMORY(program);
	program->image = image;
	program->pthread_pointer = image->arch->pthread.pointer;
	TRY(program_find_modules(program));
	program_find_signatures(program, findings);
	TRY(read_threads(program));
	TRY(program_find_stacks(program));
	TRY(program_find_thread_memory(program));
	program_report_missing(program, findings);
	report_unjoined(program, findings);
	*ret = take(program);
	return NULL;
}

void program_destroy(struct program *program)
{
	for (size_t i = 0; i < program->module_count; i++)
		symbol_names_destroy(program->modules[i].names);
	free(program->modules);
	free(program->threads);
	free(program->stacks);
	free(program->tls_modules);
	free(program->thread_memory);
	free(program);
}

bool program_is_at_work(const struct program *program)
{
	for (size_t i = 0; i < program->thread_count; i++)
		if (program->threads[i].system_call == SYSTEM_CALL_NONE)
			return true;
	return false;
}

const struct module *program_find_module(const struct program *program, uint64_t address)
{
	return LIST_HOLDER(program->modules, program->module_count, start, end, address);
}

const struct module *program_main_module(const struct program *program)
{
	uint64_t entry = image_auxiliary(program->image, AT_ENTRY, 0);
	const struct module *main = program_find_module(program, entry);

	return main || program->module_count == 0 ? main : &program->modules[0];
}

bool program_knows_modules(const struct program *program)
{
	const struct image *image = program->image;

	return image->mapping_count > 0 ||
	       (image_auxiliary(image, AT_PHDR, 0) != 0 && image_auxiliary(image, AT_BASE, 0) == 0);
}

const struct stack *program_find_stack(const struct program *program, uint64_t address)
{
	return LIST_HOLDER(program->stacks, program->stack_count, start, end, address);
}

const char *stack_kind_name(enum stack_kind kind)
{
	static const char *const names[] = {
		[STACK_MAIN] = "main",
		[STACK_THREAD] = "thread",
		[STACK_FINISHED] = "finished thread",
		[STACK_UNJOINED] = "unjoined thread",
		[STACK_VANISHED] = "vanished thread",
	};

	return names[kind];
}
