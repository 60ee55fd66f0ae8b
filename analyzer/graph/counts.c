#include "analyzer/graph/counts.h"

#include "analyzer/base/list.h"
#include "analyzer/base/macros.h"
#include "analyzer/image/view.h"
#include "analyzer/runtimes/runtimes.h"

#include <string.h>

struct search {
	const struct counts_input *input;
	struct counts *counts;
	struct heap_bounds bounds;
	ARRAY(uint32_t) found; /* references, by allocation */
};

static void search_deinit(struct search *search)
{
	array_release(&search->found);
}
DEFINE_DEINIT(search_deinit, struct search)

void counts_deinit(struct counts *counts)
{
	bitmap_deinit(&counts->counted);
	bitmap_deinit(&counts->collected);
	bitmap_deinit(&counts->left);
	array_release(&counts->lost);
}

static struct error *add_to(const struct search *search, struct bitmap *set, size_t id)
{
	if (!set->words)
		TRY(bitmap_init(set, search->input->unreachable->count, search->input->account));
	bitmap_set(set, id);
	return NULL;
}

static struct error *find_counted(struct search *search)
{
	const struct counts_input *input = search->input;
	struct counts *counts = search->counts;
	struct object_liveness liveness;

	bitmap_for_each(id, input->unreachable) {
		if (!runtimes_count_of(input->runtimes, (allocation_id)id, &liveness))
			continue;
		if (runtimes_have_left(input->runtimes, (allocation_id)id)) {
			TRY(add_to(search, &counts->left, id));
			continue;
		}
		TRY(add_to(search, &counts->counted, id));
		if (!runtimes_keep_cycle(input->runtimes, (allocation_id)id))
			TRY(add_to(search, &counts->collected, id));
	}
	return NULL;
}

/* Count the word, at place in the source, if it is a reference. */
static void count_word(struct search *search, allocation_id source, uint64_t place, uint64_t word)
{
	const struct counts_input *input = search->input;
	struct object_liveness liveness;
	allocation_id target;

	if (!heap_bounds_hold(&search->bounds, word))
		return;
	target = allocation_find(input->index, word);
	if (target == NO_ALLOCATION || !bitmap_get(&search->counts->counted, target) ||
	    search->found.items[target] == UINT32_MAX)
		return;
	if (runtimes_count_of(input->runtimes, target, &liveness) && liveness.address == word &&
	    !runtimes_is_link(input->runtimes, source, target, word, place))
		search->found.items[target]++;
}

static void count_words(struct search *search, struct view *view, allocation_id source,
			struct memory_range range)
{
	while (range.start < range.end) {
		uint64_t size, word;
		const uint8_t *bytes = view_bytes(view, range.start, &size);

		if (!bytes)
			return;
		size = MIN(size, range.end - range.start);
		for (uint64_t i = 0; i + sizeof(word) <= size; i += sizeof(word)) {
			memcpy(&word, bytes + i, sizeof(word));
			count_word(search, source, range.start + i, word);
		}
		range.start += size;
	}
}

static struct error *count_references(struct search *search)
{
	const struct counts_input *input = search->input;
	struct view view = { input->image };
	uint64_t passed = 0;
	size_t hint = 0;

	progress_begin(input->progress, "counting references", input->unreachable->count);
	TRY(array_resize(&search->found, input->unreachable->count));
	bitmap_for_each(id, input->unreachable) {
		TRY(progress_check_at(input->progress, id, &passed));
		count_words(search, &view, (allocation_id)id,
			    allocation_range_near(input->index, (allocation_id)id, &hint));
	}
	return NULL;
}

static struct error *find_lost(struct search *search)
{
	struct counts *counts = search->counts;
	struct object_liveness liveness;

	bitmap_for_each(id, &counts->counted) {
		uint32_t found = search->found.items[id];

		if (runtimes_count_of(search->input->runtimes, (allocation_id)id, &liveness) &&
		    liveness.count > found)
			TRY(array_append(
				&counts->lost,
				(struct lost_count){ (allocation_id)id, liveness.count, found }));
	}
	return NULL;
}

struct error *counts_find(const struct counts_input *input, struct counts *ret)
{
	_cleanup_(counts_deinit) struct counts counts = { .lost.memory.account = input->account };
	_cleanup_(search_deinit) struct search search = {
		.input = input,
		.counts = &counts,
		.bounds = allocation_bounds(input->index),
		.found.memory.account = input->account,
	};

	TRY(find_counted(&search));
	if (counts.counted.words) {
		TRY(count_references(&search));
		TRY(find_lost(&search));
	}
	*ret = take_struct(counts);
	return NULL;
}

const struct lost_count *counts_lost(const struct counts *counts, allocation_id id)
{
	size_t i = BISECT(number, 0, counts->lost.count, counts->lost.items[number].id < id);

	return i < counts->lost.count && counts->lost.items[i].id == id ? &counts->lost.items[i]
									: NULL;
}
