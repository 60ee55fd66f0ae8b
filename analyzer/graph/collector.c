#include "analyzer/graph/collector.h"

/* The range is the data of a module as far as that goes, or nothing. */
static bool cut_to_module(const struct program *program, struct root_range *range)
{
	const struct module *module = program_find_module(program, range->start);

	if (!module)
		return false;
	range->end = MIN(range->end, module->end);
	return true;
}

/* The range is what a thread has in use of a stack that the program made. */
static bool cut_to_stack(const struct program *program, struct root_range *range)
{
	for (size_t i = 0; i < program->thread_count; i++) {
		uint64_t live = program->threads[i].used_from;

		if (live - range->start >= range->end - range->start)
			continue;
		range->start = live;
		return true;
	}
	return false;
}

/* True if the collector scans part of the range; narrows the range to it. */
static bool is_scanned(const void *data, struct root_range *range)
{
	const struct program *program = data;

	if (range->kind != ROOT_STATIC || range->is_code)
		return false;
	return (range->is_writable && cut_to_module(program, range)) ||
	       cut_to_stack(program, range);
}

/* Used objects of the collector that it never frees by itself. */
static struct error *add_uncollectable(const struct allocation_index *index,
				       const struct bitmap *within, struct memory_account *account,
				       struct bitmap *from)
{
	const struct bitmap *collectable = allocation_having(index, TRAIT_COLLECTABLE);
	_cleanup_(bitmap_deinit) struct bitmap kept = { 0 };

	TRY(bitmap_init_minus(&kept, within, collectable, account));
	bitmap_or(from, &kept);
	return NULL;
}

static struct error *find_starts(const struct collector_input *input, const struct bitmap *within,
				 struct bitmap *from)
{
	TRY(roots_find_targets(input->roots, is_scanned, input->program, from));
	bitmap_or(from, root_targets(input->roots, ROOT_STACK));
	bitmap_or(from, root_targets(input->roots, ROOT_REGISTER));
	bitmap_and(from, within);
	return add_uncollectable(input->index, within, input->account, from);
}

static struct error *mark(const struct collector_input *input, struct bitmap *within,
			  struct bitmap *from, struct bitmap *reached)
{
	const struct bitmap *managed = allocation_having(input->index, TRAIT_MANAGED);

	if (!managed)
		return NULL;
	bitmap_copy(within, managed);
	bitmap_and(within, allocation_used(input->index));
	TRY(find_starts(input, within, from));
	return graph_mark_within(input->graph, within, from, reached, input->account,
				 input->progress);
}

struct error *collector_mark(const struct collector_input *input, struct bitmap *ret)
{
	size_t count = allocation_count(input->index);
	_cleanup_(bitmap_deinit) struct bitmap within = { 0 };
	_cleanup_(bitmap_deinit) struct bitmap from = { 0 };
	_cleanup_(bitmap_deinit) struct bitmap reached = { 0 };

	TRY(bitmap_init(&within, count, input->account));
	TRY(bitmap_init(&from, count, input->account));
	TRY(bitmap_init(&reached, count, input->account));
	TRY(mark(input, &within, &from, &reached));
	*ret = take_struct(reached);
	return NULL;
}
