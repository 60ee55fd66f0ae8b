/*
 * Pages of huge pages (hpdata.h, sec.h of 5.3), with hpa:true.
 *
 * Small extents are then pages of 2 MiB of memory. What is free of these has no extent, and what
 * waits in a cache of extents has one that may have left the tree. So all of such memory that no
 * allocation has is free. Its metadata are in a block of a base:
 *
 *	| address | ... | longest free range | active pages: number, bits | touched: number, bits |
 */
#include "allocators/jemalloc/jemalloc.h"

#include "analyzer/base/keep.h"
#include "analyzer/base/sort.h"
#include "analyzer/program/module_words.h"

enum {
	HUGE_BYTES = 2 << 20,
	HUGE_PAGES = 512,
	BITMAP = HUGE_PAGES / 64,
	RECORD_WORDS = 48,
	FIRST_COUNT = 8,  /* the number of active pages is one of the words from this on */
	BIT_OF_HUGE = 14, /* of an extent's bits */
	CLASS_SHIFT = 20, /* in 5.3 */
	LOG_USUAL_PAGE = 12,
};

DEFINE_COMPARE(compare_extents, struct jemalloc_extent, ASCENDING(start), DESCENDING(bytes))

/* The longest range of bits that are not set. */
static uint64_t longest_free(const uint64_t bits[BITMAP])
{
	uint64_t longest = 0, now = 0;

	for (unsigned int i = 0; i < HUGE_PAGES; i++) {
		now = bits[i / 64] >> i % 64 & 1 ? 0 : now + 1;
		longest = now > longest ? now : longest;
	}
	return longest;
}

static bool is_count(const uint64_t words[1 + BITMAP])
{
	bool beyond;

	return words[0] <= HUGE_PAGES &&
	       jemalloc_count_bits(words + 1, HUGE_PAGES, &beyond) == words[0];
}

/*
 * True if the words from the number of active pages on are consistent: active pages are among the
 * touched.
 */
static bool are_counts(const uint64_t *words)
{
	const uint64_t *active = words + 1, *touched = active + BITMAP + 1;

	if (!is_count(words) || !is_count(touched - 1) || words[-1] > HUGE_PAGES)
		return false;
	for (unsigned int i = 0; i < BITMAP; i++)
		if (active[i] & ~touched[i])
			return false;
	return longest_free(active) == words[-1];
}

static bool is_record(const struct image *image, struct view *view, uint64_t address,
		      uint64_t *ret_start)
{
	uint64_t words[RECORD_WORDS];

	if (!view_word(view, address, ret_start) || *ret_start < PAGE ||
	    *ret_start % HUGE_BYTES != 0 || !image_may_address(image, *ret_start) ||
	    !is_anonymous_memory(image, *ret_start) ||
	    !view_read(view, address, words, sizeof(words)))
		return false;
	for (unsigned int i = FIRST_COUNT; i + 2 * (1 + BITMAP) <= RECORD_WORDS; i++)
		if (are_counts(words + i))
			return true;
	return false;
}

static struct error *find_records(const struct jemalloc *je, const struct image *image,
				  struct range_list *list)
{
	struct view view = { image };
	uint64_t start;

	array_for_each(base, &je->bases) {
		for (uint64_t at = base->start; at < base->end; at += METADATA_UNIT)
			if (is_record(image, &view, at, &start))
				TRY(array_append(
					list, (struct memory_range){ start, start + HUGE_BYTES }));
	}
	list->count = memory_ranges_join(list->items, list->count);
	return NULL;
}

/* Extents in a cache are not being changed, so remove them from that list. */
static void drop_changing(struct jemalloc *je, const struct memory_range *huge)
{
	array_keep(&je->changing, range, last,
		   range->start < huge->start || range->end > huge->end);
}

static struct error *add_free(struct jemalloc *je, uint64_t start, uint64_t end, uint64_t arena)
{
	const struct jemalloc_layout *layout = &je->layout;

	if (start >= end)
		return NULL;
	je->arenas.items[je->arena_numbers[arena]].bytes += end - start;
	return array_append(&je->extents,
			    (struct jemalloc_extent){
				    .start = start,
				    .metadata = je->bases.items[0].start,
				    .bits = arena | (uint64_t)EXTENT_DIRTY << layout->state_shift |
					    (uint64_t)layout->class_count << layout->class_shift,
				    .bytes = end - start,
			    });
}

/* All of the memory that no extent of the first count has is free. */
static struct error *add_gaps(struct jemalloc *je, size_t count, const struct memory_range *huge)
{
	size_t i = BISECT(j, 0, count, extent_end(&je->extents.items[j]) <= huge->start);
	uint64_t at = huge->start, arena = 0;

	for (; i < count && je->extents.items[i].start < huge->end; i++) {
		struct jemalloc_extent extent = je->extents.items[i];

		arena = arena_index(&extent);
		TRY(add_free(je, at, extent.start, arena));
		at = extent_end(&extent);
	}
	return add_free(je, at, huge->end, arena);
}

static bool has_huge(const struct jemalloc *je)
{
	array_for_each(extent, &je->extents)
		if (extent->bits >> BIT_OF_HUGE & 1)
			return true;
	return false;
}

struct error *jemalloc_find_huge_pages(struct jemalloc *je, const struct heap_context *context)
{
	struct range_list list = { 0 };
	struct error *error;
	size_t count = je->extents.count;

	if (je->layout.class_shift != CLASS_SHIFT || je->geometry.log_page != LOG_USUAL_PAGE ||
	    je->geometry.word != sizeof(uint64_t) || je->bases.count == 0 ||
	    je->arenas.count == 0 || !has_huge(je))
		return NULL;
	list.memory.account = context->account;
	error = find_records(je, context->image, &list);
	for (size_t i = 0; i < list.count && !error; i++) {
		drop_changing(je, &list.items[i]);
		error = add_gaps(je, count, &list.items[i]);
	}
	array_sort(&je->extents, compare_extents);
	array_release(&list);
	return error;
}
