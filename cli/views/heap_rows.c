#include "cli/views/heap_rows.h"

enum { MOST_ALLOCATORS = 16 };

struct heap_total {
	const struct allocator *allocator;
	uint64_t count, bytes;
};

/* In the order in which the allocators' arenas come. */
struct heap_totals {
	struct heap_total list[MOST_ALLOCATORS];
	size_t count;
};

static struct heap_total *find_total(struct heap_totals *totals, const struct allocator *allocator)
{
	for (size_t i = 0; i < totals->count; i++)
		if (totals->list[i].allocator == allocator)
			return &totals->list[i];
	return NULL;
}

static void find_allocators(struct heap_totals *totals, const struct heaps *heaps)
{
	size_t count = heaps_arena_count(heaps);

	for (size_t i = 0; i < count; i++) {
		const struct allocator *allocator = heaps_arena_allocator(heaps, (arena_number)i);

		if (totals->count < MOST_ALLOCATORS && !find_total(totals, allocator))
			totals->list[totals->count++].allocator = allocator;
	}
}

/* Add what the region has of the members. */
static void add_region(struct heap_total *total, const struct allocation_index *index,
		       const struct heap_region *region, const struct bitmap *members)
{
	size_t end = region->first + (size_t)region->count, hint = 0;

	for (size_t id = bitmap_next(members, region->first); id < end;
	     id = bitmap_next(members, id + 1)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);

		total->count++;
		total->bytes += range.end - range.start;
	}
}

static void write_totals(struct report *report, const struct heap_totals *totals)
{
	static const struct table table = TABLE(
		"heap",
		"Of these, {count} allocations taking 0x{bytes} ({bytes,}) bytes are in the heap of {allocator}.",
		{ "count", VALUE_COUNT }, { "bytes", VALUE_BYTES }, { "allocator", VALUE_TEXT });

	report_begin_table(report, &table);
	for (size_t i = 0; i < totals->count; i++) {
		if (totals->list[i].count == 0)
			continue;
		report_row(report, totals->list[i].count, totals->list[i].bytes,
			   totals->list[i].allocator->name);
	}
	report_end_table(report);
}

void heap_rows_write(struct report *report, const struct analysis *analysis,
		     const struct bitmap *members)
{
	const struct allocation_index *index = analysis_index(analysis);
	const struct heaps *heaps = analysis_heaps(analysis);
	struct heap_totals totals = { .count = 0 };

	find_allocators(&totals, heaps);
	if (totals.count < 2)
		return;
	for (size_t i = 0; i < heap_region_count(index); i++) {
		const struct heap_region *region = heap_region(index, i);
		struct heap_total *total =
			find_total(&totals, heaps_arena_allocator(heaps, region->arena));

		if (total && region->count > 0)
			add_region(total, index, region, members);
	}
	write_totals(report, &totals);
}
