#include "analyzer/query/ranges.h"

#include "analyzer/base/list.h"
#include "analyzer/query/thread_value.h"

#include <string.h>

struct error *ranges_add(struct ranges *ranges, struct range range)
{
	if (!LIST_GROW(ranges->list, ranges->count))
		return &error_no_memory;
	ranges->list[ranges->count++] = range;
	return NULL;
}

struct range ranges_at(const struct ranges *ranges, size_t number)
{
	if (ranges->list)
		return ranges->list[number];
	return (struct range){
		.start = hits_at(&ranges->hits, number),
		.size = ranges->hits.size,
		.number = number,
	};
}

uint64_t ranges_found(const struct ranges *ranges)
{
	return ranges->hits.count ? ranges->hits.count : ranges->count;
}

void ranges_deinit(struct ranges *ranges)
{
	free(ranges->list);
	free(ranges->details);
	hits_deinit(&ranges->hits);
	*ranges = (struct ranges){ 0 };
}

static struct error *stacks_collect(struct analysis *analysis,
				    const struct set_arguments *arguments, struct ranges *ret)
{
	static const char *const groups[] = {
		[STACK_MAIN] = "Main stacks",
		[STACK_THREAD] = "Thread stacks",
		[STACK_FINISHED] = "Stacks of finished threads",
		[STACK_VANISHED] = "Stacks of threads that vanished in a fork",
	};
	const struct program *program = analysis_program(analysis);
	struct error *error = NULL;

	for (size_t i = 0; !error && i < program_stack_count(program); i++) {
		const struct stack *stack = program_stack(program, i);

		error = ranges_add(ret, (struct range){ .start = stack->start,
							.size = stack->end - stack->start,
							.group = groups[stack->kind],
							.number = i });
	}
	return error;
}

static void stacks_write(const struct analysis *analysis, const struct ranges *ranges,
			 const struct range *range, struct report *report)
{
	const struct program *program = analysis_program(analysis);
	const struct stack *stack = program_stack(program, range->number);

	report_add(report, stack->start, stack->end, range->size, stack->live_end - stack->live);
	report_thread(report, program, stack->thread);
	report_add(report, stack_kind_name(stack->kind));
}

const struct range_kind range_kind_stacks = {
	.noun = "stacks",
	.table = TABLE("stack", NULL, { "start", VALUE_ADDRESS }, { "end", VALUE_ADDRESS },
		       { "size", VALUE_BYTES }, { "live", VALUE_BYTES }, { "thread", VALUE_NUMBER },
		       { "kind", VALUE_TEXT }),
	.contiguous = true,
	.collect = stacks_collect,
	.write = stacks_write,
};

static struct error *threads_collect(struct analysis *analysis,
				     const struct set_arguments *arguments, struct ranges *ret)
{
	const struct program *program = analysis_program(analysis);
	struct error *error = NULL;

	for (size_t i = 0; !error && i < program_thread_count(program); i++) {
		const struct thread *thread = program_thread(program, i);
		struct range range = {
			.start = thread->stack_pointer,
			.group = "Threads whose stack is not known",
			.number = i,
		};

		if (thread->stack != NO_STACK) {
			const struct stack *stack = program_stack(program, thread->stack);

			range.start = stack->start;
			range.size = stack->end - stack->start;
			range.group = "Threads whose stack is known";
		}
		error = ranges_add(ret, range);
	}
	return error;
}

static void threads_write(const struct analysis *analysis, const struct ranges *ranges,
			  const struct range *range, struct report *report)
{
	const struct program *program = analysis_program(analysis);
	const struct thread *thread = program_thread(program, range->number);
	uint64_t instruction = thread->instruction;
	const struct module *module = program_find_module(program, instruction);
	struct debug *debug = analysis_debug(analysis);
	struct symbol symbol;

	report_add(report, thread->id, thread->stack_pointer,
		   VALUE_IF(thread->stack != NO_STACK, range->start),
		   VALUE_IF(thread->stack != NO_STACK, range->start + range->size), instruction,
		   module ? module_name(module) : NULL,
		   debug_symbol(debug, instruction, &symbol) ? symbol.name : NULL);
}

const struct range_kind range_kind_threads = {
	.noun = "threads",
	.table = TABLE("thread", NULL, { "thread", VALUE_NUMBER },
		       { "stack pointer", VALUE_ADDRESS }, { "stack start", VALUE_ADDRESS },
		       { "stack end", VALUE_ADDRESS }, { "instruction at", VALUE_ADDRESS },
		       { "in module", VALUE_TEXT }, { "in function", VALUE_TEXT }),
	.contiguous = true,
	.collect = threads_collect,
	.write = threads_write,
};

static struct error *modules_collect(struct analysis *analysis,
				     const struct set_arguments *arguments, struct ranges *ret)
{
	const struct program *program = analysis_program(analysis);
	struct error *error = NULL;

	for (size_t i = 0; !error && i < program_module_count(program); i++) {
		const struct module *module = program_module(program, i);

		error = ranges_add(ret,
				   (struct range){ .start = module->start,
						   .size = module->end - module->start,
						   .group = module->state == FILE_USED
								    ? "Modules with their file"
								    : "Modules without their file",
						   .number = i });
	}
	return error;
}

static void modules_write(const struct analysis *analysis, const struct ranges *ranges,
			  const struct range *range, struct report *report)
{
	static const char *const states[] = {
		[FILE_UNKNOWN] = "no build-id",
		[FILE_NOT_THERE] = "not there",
		[FILE_OTHER_BUILD] = "other build",
		[FILE_USED] = "used",
	};
	const struct module *module = program_module(analysis_program(analysis), range->number);

	report_add(report, module->start, module->end, range->size);
	/* The vdso has none. */
	report_add(report, module->path[0] == '[' ? NULL : states[module->state], module->path);
}

/* "file": whether the module's file could be used, or why not. */
const struct range_kind range_kind_modules = {
	.noun = "modules",
	.table = TABLE("module", NULL, { "start", VALUE_ADDRESS }, { "end", VALUE_ADDRESS },
		       { "size", VALUE_BYTES }, { "file", VALUE_TEXT }, { "path", VALUE_TEXT }),
	.contiguous = true,
	.collect = modules_collect,
	.write = modules_write,
};

/* What an arena holds. */
struct arena_use {
	uint64_t used_count, used_bytes;
	uint64_t free_count, free_bytes;
};

static void count_region(const struct allocation_index *index, const struct heap_region *region,
			 struct arena_use *use)
{
	for (uint32_t i = 0; i < region->count; i++) {
		allocation_id id = region->first + i;
		uint64_t size = allocation_size(index, id);

		if (bitmap_get(allocation_used(index), id)) {
			use->used_count++;
			use->used_bytes += size;
		} else {
			use->free_count++;
			use->free_bytes += size;
		}
	}
}

static struct error *arenas_collect(struct analysis *analysis,
				    const struct set_arguments *arguments, struct ranges *ret)
{
	const struct allocation_index *index = analysis_index(analysis);
	const struct heaps *heaps = analysis_heaps(analysis);
	size_t count = heaps_arena_count(heaps);
	struct arena_use *uses = calloc(count + 1, sizeof(*uses));
	struct error *error = NULL;

	if (!uses)
		return &error_no_memory;
	ret->details = uses;
	for (size_t i = 0; i < heap_region_count(index); i++) {
		const struct heap_region *region = heap_region(index, i);

		if (region->arena < count)
			count_region(index, region, &uses[region->arena]);
	}
	for (size_t i = 0; !error && i < count; i++) {
		struct arena arena = heaps_arena(heaps, (arena_number)i);

		error = ranges_add(ret, (struct range){ .start = arena.address,
							.size = arena.size,
							.group = arena.kind->group,
							.number = i });
	}
	return error;
}

static void arenas_write(const struct analysis *analysis, const struct ranges *ranges,
			 const struct range *range, struct report *report)
{
	const struct arena_use *use = (const struct arena_use *)ranges->details + range->number;
	arena_number number = (arena_number)range->number;
	const struct heaps *heaps = analysis_heaps(analysis);

	report_add(report, value_nonzero(range->start), range->size, use->used_count,
		   use->used_bytes, use->free_count, use->free_bytes,
		   heaps_arena_allocator(heaps, number)->name,
		   heaps_arena(heaps, number).kind->name);
}

const struct range_kind range_kind_arenas = {
	.noun = "arenas",
	.table = TABLE("arena", NULL, { "arena", VALUE_ADDRESS }, { "size", VALUE_BYTES },
		       { "used", VALUE_COUNT }, { "used bytes", VALUE_BYTES },
		       { "free", VALUE_COUNT }, { "free bytes", VALUE_BYTES },
		       { "allocator", VALUE_TEXT }, { "kind", VALUE_TEXT }),
	.collect = arenas_collect,
	.write = arenas_write,
};
