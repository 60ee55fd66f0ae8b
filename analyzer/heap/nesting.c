#include "analyzer/heap/nesting.h"

#include "analyzer/base/list.h"
#include "analyzer/heap/sink.h"

#include <string.h>

/* A region, and the outer one whose used block it lies in. */
struct nested_region {
	uint64_t start, end;
	size_t heap;
	size_t number; /* in the sink */
	size_t outer;  /* in the sink, or NOT_NESTED */
	struct block block;
};

static const size_t NOT_NESTED = SIZE_MAX;

/* Sort by address; of those with one start, the outer first. */
DEFINE_COMPARE(compare_regions, struct nested_region, ASCENDING(start), DESCENDING(end),
	       ASCENDING(number))
DEFINE_COMPARE(compare_outer, struct nested_region, ASCENDING(outer), ASCENDING(start))
DEFINE_COMPARE(compare_blocks, struct outer_block, ASCENDING(start))

static size_t heap_of(const arena_number *firsts, size_t heaps, arena_number arena)
{
	while (heaps > 1 && firsts[heaps - 1] > arena)
		heaps--;
	return heaps - 1;
}

/* The used block of the region that all of the range is in. */
static bool find_block(const struct block_sink *sink, const struct heap_region *region,
		       uint64_t start, uint64_t end, struct block *ret)
{
	size_t number = block_sink_number_below(sink, region, start);

	if (number == sink->count)
		return false;
	*ret = block_sink_get(sink, region, number);
	return ret->state == BLOCK_USED && end - ret->start <= ret->size;
}

/* Find the outer block of each: the regions around it are on a stack. Returns how many have one. */
static size_t find_outer(const struct block_sink *sink, struct nested_region *all, size_t count,
			 size_t *stack)
{
	const struct heap_region *regions = sink->regions.items;
	size_t depth = 0, found = 0;

	for (size_t i = 0; i < count; i++) {
		const struct nested_region *around;

		while (depth > 0 && all[stack[depth - 1]].end <= all[i].start)
			depth--;
		around = depth > 0 ? &all[stack[depth - 1]] : NULL;
		all[i].outer = NOT_NESTED;
		if (around && around->heap != all[i].heap &&
		    find_block(sink, &regions[around->number], all[i].start, all[i].end,
			       &all[i].block)) {
			all[i].outer = around->number;
			found++;
		}
		stack[depth++] = i;
	}
	return found;
}

/* The start of the first block of the region that may begin at or above address. */
static uint64_t next_unit(const struct heap_region *region, uint64_t address)
{
	uint64_t unit = UINT64_C(1) << region->shift;
	uint64_t next = region->start + (address - region->start + unit - 1) / unit * unit;

	return next < region->end ? next : region->end;
}

/* Inner regions end where an outer one may begin: no byte is between them that is in neither. */
static void stretch_inner(const struct block_sink *sink, const struct nested_region *inner,
			  size_t count)
{
	struct heap_region *regions = sink->regions.items;

	for (size_t i = 0; i < count; i++) {
		struct heap_region *region = &regions[inner[i].number];

		region->end = next_unit(&regions[inner[i].outer], region->end);
		if (i + 1 < count && inner[i + 1].outer == inner[i].outer &&
		    region->end > inner[i + 1].start)
			region->end = inner[i + 1].start;
	}
}

/* End the last region of the sink at the block that gives way, of which the head remains. */
static struct error *add_head(struct block_sink *to, struct block block, uint64_t head)
{
	struct heap_region *last;

	block.size = head;
	if (head > 0)
		TRY(block_sink_add(to, block));
	last = to->regions.items + to->regions.count - 1;
	if (last->start == block.start + head)
		to->regions.count--; /* nothing is in it */
	else
		last->end = block.start + head;
	return NULL;
}

/* Add the blocks of the region that count inner ones lie in: they stand apart from these. */
static struct error *cut_region(const struct block_sink *from, const struct heap_region *region,
				const struct nested_region *inner, size_t count,
				struct block_sink *to)
{
	struct error *error;
	size_t next = 0;

	to->shift = region->shift;
	error = block_sink_region(to, region->start, region->end, region->arena);
	for (size_t i = region->first; i < region->first + (size_t)region->count && !error; i++) {
		struct block block = block_sink_get(from, region, i);
		uint64_t behind = next_unit(region, block.start + block.size);

		if (next == count || inner[next].block.start != block.start) {
			error = block_sink_add(to, block);
			continue;
		}
		error = add_head(to, block, inner[next].start - block.start);
		while (next < count && inner[next].block.start == block.start)
			next++;
		if (!error && behind < region->end)
			error = block_sink_region(to, behind, region->end, region->arena);
	}
	return error;
}

static struct error *add_outer(struct nesting *nesting, struct block_sink *sink,
			       const struct nested_region *inner)
{
	const struct heap_region *outer = &sink->regions.items[inner->outer];
	uint64_t end = inner->block.start + inner->block.size;
	struct outer_block block = {
		.start = inner->block.start,
		.end = next_unit(outer, end),
		.arena = outer->arena,
		.inner_arena = sink->regions.items[inner->number].arena,
	};
	size_t count = nesting->blocks.count;

	if (count > 0 && nesting->blocks.items[count - 1].start == block.start)
		return NULL;
	TRY(array_append(&nesting->blocks, block));
	/* A header that reaches in from above is no root. */
	return end == block.end ? NULL : block_sink_claim(sink, end, block.end);
}

static struct error *rebuild(struct block_sink *sink, const struct nested_region *inner,
			     size_t count)
{
	_cleanup_(block_sink_destroy) struct block_sink *to = NULL;
	const struct heap_region *regions = sink->regions.items;
	size_t next = 0;

	TRY(block_sink_create(sink->account, &to));
	for (size_t i = 0; i < sink->regions.count; i++) {
		size_t first = next;

		while (next < count && inner[next].outer == i)
			next++;
		TRY(next > first ? cut_region(sink, &regions[i], inner + first, next - first, to)
				 : block_sink_move_region(sink, to, &regions[i]));
		block_sink_forget(sink, &regions[i]);
	}
	block_sink_replace(sink, to);
	return NULL;
}

struct error *nesting_resolve(struct block_sink *sink, const arena_number *firsts, size_t heaps,
			      struct nesting *ret_nesting)
{
	const struct heap_region *regions = sink->regions.items;
	size_t count = sink->regions.count, found, kept = 0;
	_cleanup_(free) struct nested_region *all = calloc(count + 1, sizeof(*all));
	_cleanup_(free) size_t *stack = calloc(count + 1, sizeof(*stack));

	TRY_MEMORY(all && stack);
	for (size_t i = 0; i < count; i++)
		all[i] = (struct nested_region){ regions[i].start, regions[i].end,
						 heap_of(firsts, heaps, regions[i].arena), i };
	SORT(all, count, compare_regions);
	found = find_outer(sink, all, count, stack);
	for (size_t i = 0; i < count && found > 0; i++)
		if (all[i].outer != NOT_NESTED)
			all[kept++] = all[i];
	SORT(all, kept, compare_outer);
	for (size_t i = 0; i < kept; i++)
		TRY(add_outer(ret_nesting, sink, &all[i]));
	if (kept == 0)
		return NULL;
	array_sort(&ret_nesting->blocks, compare_blocks);
	stretch_inner(sink, all, kept);
	return rebuild(sink, all, kept);
}

const struct outer_block *nesting_find(const struct nesting *nesting, uint64_t address)
{
	return LIST_HOLDER(nesting->blocks.items, nesting->blocks.count, start, end, address);
}
