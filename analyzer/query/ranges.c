#include "analyzer/query/ranges.h"

#include "analyzer/base/list.h"
#include "analyzer/kinds/signatures.h"

#include <string.h>

struct error *ranges_add(struct ranges *ranges, struct range range)
{
	return LIST_APPEND(ranges->list, ranges->count, range);
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

struct error *ranges_collect(struct analysis *analysis, const struct range_kind *kind,
			     const struct set_arguments *arguments, struct ranges *ret)
{
	_cleanup_(ranges_deinit) struct ranges ranges = { 0 };
	struct range range = { 0 };

	if (kind->collect)
		TRY(kind->collect(analysis, arguments, &ranges));
	for (size_t i = 0; kind->at && kind->at(analysis, i, &range); i++) {
		range.number = i;
		TRY(ranges_add(&ranges, range));
	}
	*ret = take(ranges);
	return NULL;
}

static bool stack_range(const struct analysis *analysis, size_t number, struct range *ret)
{
	static const char *const groups[] = {
		[STACK_MAIN] = "Main stacks",
		[STACK_THREAD] = "Thread stacks",
		[STACK_FINISHED] = "Stacks of finished threads",
		[STACK_UNJOINED] = "Stacks of finished threads that were not joined",
		[STACK_VANISHED] = "Stacks of threads that vanished in a fork",
	};
	const struct program *program = analysis_program(analysis);
	const struct stack *stack;

	if (number == program->stack_count)
		return false;
	stack = &program->stacks[number];
	*ret = (struct range){ stack->start, stack->end - stack->start, groups[stack->kind] };
	return true;
}

static void stacks_write(const struct analysis *analysis, const struct ranges *ranges,
			 const struct range *range, struct report *report)
{
	const struct program *program = analysis_program(analysis);
	const struct stack *stack = &program->stacks[range->number];

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
	.at = stack_range,
	.write = stacks_write,
};

static bool thread_range(const struct analysis *analysis, size_t number, struct range *ret)
{
	const struct program *program = analysis_program(analysis);
	const struct thread *thread;
	const struct stack *stack;

	if (number == program->thread_count)
		return false;
	thread = &program->threads[number];
	if (thread->stack == NO_STACK) {
		*ret = (struct range){ thread->stack_pointer, 0, "Threads without a known stack" };
		return true;
	}
	stack = &program->stacks[thread->stack];
	*ret = (struct range){ stack->start, stack->end - stack->start,
			       "Threads with a known stack" };
	return true;
}

static void threads_write(const struct analysis *analysis, const struct ranges *ranges,
			  const struct range *range, struct report *report)
{
	const struct program *program = analysis_program(analysis);
	const struct thread *thread = &program->threads[range->number];
	uint64_t instruction = thread->instruction;
	const struct module *module = program_find_module(program, instruction);
	const struct image *image = analysis_image(analysis);
	struct debug *debug = analysis_debug(analysis);
	bool is_last = range->number == 0 && image_fatal_signal(image);
	struct symbol symbol;

	report_add(report, thread->id, thread->stack_pointer,
		   VALUE_IF(thread->stack != NO_STACK, range->start),
		   VALUE_IF(thread->stack != NO_STACK, range->start + range->size), instruction,
		   module ? module_name(module) : NULL,
		   debug_symbol(debug, instruction, &symbol) ? symbol.name : NULL,
		   VALUE_IF(is_last, strsignal(image_fatal_signal(image))));
}

const struct range_kind range_kind_threads = {
	.noun = "threads",
	.table = TABLE(
		"thread", NULL, { "thread", VALUE_NUMBER }, { "stack pointer", VALUE_ADDRESS },
		{ "stack start", VALUE_ADDRESS, true }, { "stack end", VALUE_ADDRESS, true },
		{ "instruction at", VALUE_ADDRESS, .heading = "PC" }, { "in module", VALUE_TEXT },
		{ "in function", VALUE_TEXT }, { "ended by", VALUE_TEXT }),
	.contiguous = true,
	.calls = RANGE_OF_THREAD,
	.at = thread_range,
	.write = threads_write,
};

static bool module_range(const struct analysis *analysis, size_t number, struct range *ret)
{
	const struct program *program = analysis_program(analysis);
	const struct module *module;

	if (number == program->module_count)
		return false;
	module = &program->modules[number];
	*ret = (struct range){ module->start, module->end - module->start,
			       module->state == FILE_USED ? "Modules with their file"
							  : "Modules without their file" };
	return true;
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
	const struct module *module = &analysis_program(analysis)->modules[range->number];
	const struct mapping *mapping = image_find_mapping(analysis_image(analysis), module->start);
	const char *state = states[module->state];

	if (module->path[0] == '[') /* the vdso has none */
		state = NULL;
	else if (module->state == FILE_USED && mapping && mapping->is_matched)
		state = "likely";
	report_add(report, module->start, module->end, range->size);
	report_add(report, state, module->path);
}

/* "file": whether the module's file could be used, or why not. */
const struct range_kind range_kind_modules = {
	.noun = "modules",
	.table = TABLE("module", NULL, { "start", VALUE_ADDRESS }, { "end", VALUE_ADDRESS },
		       { "size", VALUE_BYTES }, { "file", VALUE_TEXT }, { "path", VALUE_TEXT }),
	.contiguous = true,
	.at = module_range,
	.write = modules_write,
};

/* The contents of an arena. */
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

static struct error *count_arena_uses(struct analysis *analysis,
				      const struct set_arguments *arguments, struct ranges *ret)
{
	const struct allocation_index *index = analysis_index(analysis);
	size_t count = heaps_arena_count(analysis_heaps(analysis));
	struct arena_use *uses = calloc(count + 1, sizeof(*uses));

	TRY_MEMORY(uses);
	ret->details = uses;
	for (size_t i = 0; i < heap_region_count(index); i++) {
		const struct heap_region *region = heap_region(index, i);

		if (region->arena < count)
			count_region(index, region, &uses[region->arena]);
	}
	return NULL;
}

static bool arena_range(const struct analysis *analysis, size_t number, struct range *ret)
{
	const struct heaps *heaps = analysis_heaps(analysis);
	struct arena arena;

	if (number == heaps_arena_count(heaps))
		return false;
	arena = heaps_arena(heaps, (arena_number)number);
	*ret = (struct range){ arena.address, arena.size, arena.kind->group };
	return true;
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
	.collect = count_arena_uses,
	.at = arena_range,
	.write = arenas_write,
};

static bool fiber_range(const struct analysis *analysis, size_t number, struct range *ret)
{
	const struct fibers *fibers = analysis_fibers(analysis);
	const struct fiber *fiber;

	if (number == fibers->count)
		return false;
	fiber = &fibers->items[number];
	*ret = (struct range){ fiber->start, fiber->end - fiber->start,
			       fiber->running ? "Running fibers" : "Waiting fibers" };
	return true;
}

static void write_fiber(const struct analysis *analysis, const struct ranges *ranges,
			const struct range *range, struct report *report)
{
	const struct fiber *fiber = &analysis_fibers(analysis)->items[range->number];

	report_add(report, fiber->object, fiber->start, fiber->end, range->size,
		   fiber->end - fiber->live, fiber->running ? "running" : "waiting");
	report_thread(report, analysis_program(analysis), fiber->thread);
	report_add(report, fiber->name);
}

const struct range_kind range_kind_fibers = {
	.noun = "fibers",
	.table = TABLE("fiber", NULL, { "fiber", VALUE_ADDRESS },
		       { "stack start", VALUE_ADDRESS, true }, { "stack end", VALUE_ADDRESS, true },
		       { "size", VALUE_BYTES }, { "live", VALUE_BYTES }, { "state", VALUE_TEXT },
		       { "thread", VALUE_NUMBER }, { "name", VALUE_TEXT }),
	.contiguous = true,
	.calls = RANGE_OF_FIBER,
	.at = fiber_range,
	.write = write_fiber,
};

static const struct {
	const char *name, *group;
} signature_kinds[] = {
	[SIGNATURE_UNKNOWN] = { "unknown", "Read-only addresses without a name" },
	[SIGNATURE_CLASS] = { "class", "Vtables of classes" },
	[SIGNATURE_FUNCTION] = { "function", "Functions" },
	[SIGNATURE_DATA] = { "data", "Data objects" },
};

/* The details are the tallies of the signatures, in their order. */
static struct error *signatures_collect(struct analysis *analysis,
					const struct set_arguments *arguments, struct ranges *ret)
{
	_cleanup_(table_release) struct tally_table signatures = { 0 };
	struct classes *classes = analysis_classes(analysis);
	struct tally *tallies;

	TRY(signatures_count(analysis, &signatures));
	tallies = calloc(signatures.count + 1, sizeof(*tallies));
	TRY_MEMORY(tallies);
	ret->details = tallies;
	for (size_t i = 0; i < signatures.count; i++) {
		enum signature_kind kind = classes_kind(classes, signatures.items[i].key);

		tallies[i] = signatures.items[i];
		TRY(ranges_add(ret, (struct range){ tallies[i].key, tallies[i].bytes,
						    signature_kinds[kind].group, i }));
	}
	return NULL;
}

static void signatures_write(const struct analysis *analysis, const struct ranges *ranges,
			     const struct range *range, struct report *report)
{
	const struct tally *tally = (const struct tally *)ranges->details + range->number;
	struct classes *classes = analysis_classes(analysis);
	const char *name;

	report_add(report, range->start, tally->count, tally->bytes,
		   signature_kinds[classes_kind(classes, range->start)].name);
	name = classes_literal_name(classes, range->start);
	report_add(report, name ? name : classes_name(classes, range->start));
}

const struct range_kind range_kind_signatures = {
	.noun = "signatures",
	.table = TABLE("signature", NULL, { "signature", VALUE_ADDRESS },
		       { "instances", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		       { "kind", VALUE_TEXT }, { "name", VALUE_TEXT }),
	.collect = signatures_collect,
	.write = signatures_write,
};
