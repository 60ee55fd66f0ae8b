#include "analyzer/heap/unused.h"

#include "analyzer/base/list.h"

enum { WORD = 8 };

struct error *unused_init(struct unused *unused, const struct image *image,
			  const struct allocation_index *index, uint64_t budget,
			  struct memory_account *account)
{
	*unused = (struct unused){ .index = index, .view = { image }, .budget = { budget } };
	unused->ranges.memory.account = account;
	return bitmap_init(&unused->sources, allocation_count(index), account);
}

void unused_deinit(struct unused *unused)
{
	array_release(&unused->ranges);
	bitmap_deinit(&unused->sources);
}

/* Most unused words are zeros, or what is left of texts. */
static bool may_hold(struct unused *unused, struct memory_range range)
{
	enum { FEW = 64 * WORD };
	const struct heap_bounds bounds = allocation_bounds(unused->index);
	uint64_t word;

	if (!unused->view.image || range.end - range.start > FEW)
		return true;
	for (uint64_t at = range.start; at < range.end; at += WORD)
		if (view_word(&unused->view, at, &word) && heap_bounds_hold(&bounds, word))
			return true;
	return false;
}

struct error *unused_add(struct unused *unused, uint64_t start, uint64_t end)
{
	struct memory_range range = { (start + WORD - 1) & -(uint64_t)WORD, end };

	if (range.start < start || range.start >= end || !may_hold(unused, range) ||
	    !budget_take(&unused->budget))
		return NULL;
	return array_append(&unused->ranges, range);
}

struct error *unused_add_rest(struct unused *unused, uint64_t start, uint64_t used)
{
	allocation_id id = start ? allocation_find(unused->index, start) : NO_ALLOCATION;
	uint64_t word = unused->view.image ? image_word_size(unused->view.image) : WORD, end;

	if (id == NO_ALLOCATION)
		return NULL;
	end = allocation_start(unused->index, id) + allocation_size(unused->index, id);
	return used < end - start ? unused_add(unused, (start + used) & -word, end) : NULL;
}

void unused_seal(struct unused *unused)
{
	unused->ranges.count = memory_ranges_join(unused->ranges.items, unused->ranges.count);
	array_for_each(range, &unused->ranges) {
		allocation_id id = allocation_find(unused->index, range->start);

		if (id == NO_ALLOCATION)
			continue;
		bitmap_set(&unused->sources, id);
		unused->is_in_heap = true;
	}
}

bool unused_is_in_heap(const struct unused *unused)
{
	return unused->is_in_heap;
}

bool unused_has(const struct unused *unused, allocation_id source, uint64_t place)
{
	const struct memory_range *ranges = unused->ranges.items;
	size_t count = unused->ranges.count, number;

	if (count == 0 || (source != NO_ALLOCATION && !bitmap_get(&unused->sources, source)))
		return false;
	number = LIST_ABOVE(ranges, count, end, place);
	return number < count && ranges[number].start <= place;
}
