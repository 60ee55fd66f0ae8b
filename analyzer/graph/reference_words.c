#include "analyzer/graph/reference_words.h"

#include "analyzer/base/sort.h"

enum {
	MOST_BETWEEN = 1024, /* bytes that are read in vain to go on */
	FETCH_AHEAD = 1536,  /* bytes */
};

/*
 * The end of the stretch in which allocations follow each other with at most that gap between two
 * owners.
 */
static allocation_id find_end(const struct reference_words *words, allocation_id first,
			      allocation_id end, unsigned int shift)
{
	const struct extent *extents = words->index->extents;
	size_t gap = bitmap_next_clear(words->owners, first);

	while (gap < end) {
		size_t next = bitmap_next(words->owners, gap);

		if (next >= end ||
		    extents[next].start - extents[gap].start > (uint32_t)MOST_BETWEEN >> shift)
			return (allocation_id)gap;
		gap = bitmap_next_clear(words->owners, next);
	}
	return end;
}

/* The end of the last allocation below end that ends at or below limit. */
static allocation_id cut(const struct allocation_index *index, const struct stretch *stretch,
			 uint64_t limit)
{
	size_t hint = stretch->region;

	return (allocation_id)BISECT(id, stretch->first, stretch->end,
				     allocation_range_near(index, (allocation_id)id, &hint).end <=
					     limit);
}

bool stretch_find(const struct reference_words *words, struct view *view, allocation_id first,
		  allocation_id end, size_t *hint, struct stretch *ret)
{
	const struct allocation_index *index = words->index;
	struct memory_range range = allocation_range_near(index, first, hint);
	const struct heap_region *region = &index->regions[*hint];
	struct stretch stretch = { *hint, first, end, range };
	uint64_t known;

	if (region->shift > USUAL_SHIFT)
		return false;
	stretch.bytes = view_bytes(view, range.start, &known);
	/* The bits do not say where the last allocation ends. */
	end = MIN(end, region->first + region->count - 1);
	if (!stretch.bytes || first >= end)
		return false;
	stretch.end = find_end(words, first, end, region->shift);
	range = allocation_range_near(index, stretch.end - 1, hint);
	if (range.end - stretch.range.start > known) {
		stretch.end = cut(index, &stretch, stretch.range.start + known);
		if (stretch.end == first)
			return false;
		range = allocation_range_near(index, stretch.end - 1, hint);
	}
	stretch.range.end = range.end;
	*ret = stretch;
	return true;
}

/* True if the word at the offset in the region ends within the allocation. */
static inline bool is_inside(const struct extent *extent, unsigned int shift, uint64_t offset,
			     unsigned int size)
{
	return offset - ((uint64_t)extent->start << shift) + size <= extent->size;
}

/* Collect the words of the mask in the window from that unit of the region on. */
static inline __attribute__((always_inline)) void collect(struct reference_words *words,
							  const struct stretch *stretch,
							  uint64_t unit, const uint8_t *bytes,
							  uint64_t mask, unsigned int shift,
							  unsigned int size, bool by_instruction)
{
	const struct allocation_index *index = words->index;
	const struct heap_region *region = &index->regions[stretch->region];
	const struct region_layout *layout = region_layout(index, stretch->region);
	const struct window window =
		index_window(index, layout, unit, FILTER_WORDS * size >> shift, by_instruction);
	const unsigned int unit_words = (1U << shift) / size;
	/* Find the words of the unit below a start that are in no allocation. */
	unsigned int all = (1U << unit_words) - 1, gap_words = (layout->gap + size - 1) / size;
	unsigned int between = window.is_uneven ? 0 : all & ~(all >> gap_words);
	uint64_t offset = unit << shift;
	/* Add the last start below the window. */
	allocation_id before = (allocation_id)(region->first + window.next_rank - 1);
	size_t tail = words->tail;

	for (; mask; mask &= mask - 1) {
		unsigned int word = (unsigned int)__builtin_ctzll(mask);
		unsigned int at = word / unit_words;
		size_t slot = tail % WORDS_AROUND;
		uint64_t starts = window.starts & ((UINT64_C(2) << at) - 1);
		allocation_id source = before + count_bits(starts, by_instruction);
		bool is_between = window.nexts >> at & between >> (word % unit_words) & 1;

		if (window.is_uneven)
			is_between = !is_inside(&index->extents[source], shift,
						offset + size * word, size);
		words->words[slot] = load_word(bytes + size * (size_t)word, size);
		words->places[slot] = region->start + offset + size * word;
		words->sources[slot] = source;
		tail += !is_between & bitmap_get(words->owners, source);
	}
	words->tail = tail;
}

/* Prefetch what the lookups of new words need. */
static void fetch(struct reference_words *words)
{
	while (words->begun < words->tail) {
		size_t slot = words->begun % WORDS_AROUND;
		size_t count = words->tail - words->begun;

		count = MIN(count, MOST_ADDRESSES);
		count = MIN(count, WORDS_AROUND - slot);
		lookups_begin(words->index, words->words + slot, count, &words->hint,
			      words->lookups + slot);
		words->begun += count;
	}
}

/* Fetch what is read next, and once only: what lookups need is to stay in the cache. */
static inline void fetch_ahead(const uint8_t *bytes, unsigned int count)
{
	for (unsigned int i = 0; i < count; i += 64)
		__builtin_prefetch(bytes + FETCH_AHEAD + i, 0, 0);
}

/* Collect from one window, whose words are those of the filter. */
static inline __attribute__((always_inline)) void add(struct reference_words *words,
						      const struct stretch *stretch,
						      uint64_t *address, unsigned int word,
						      bool by_instruction)
{
	const struct heap_region *region = &words->index->regions[stretch->region];
	const unsigned int all = FILTER_WORDS * word;
	uint64_t offset = (*address - region->start) / all * all;
	uint64_t skipped = *address - region->start - offset, size = all - skipped;
	const uint8_t *bytes = stretch->bytes + (*address - stretch->range.start);
	uint64_t mask;

	size = MIN(size, stretch->range.end - *address);
	mask = word_filter_mask(&words->filter, bytes, size / word) << (skipped / word);
	*address += size;
	fetch_ahead(bytes, all);
	if (!mask)
		return;
	/* Each is compiled for its shift. */
	if (region->shift == USUAL_SHIFT)
		collect(words, stretch, offset >> USUAL_SHIFT, bytes - skipped, mask, USUAL_SHIFT,
			word, by_instruction);
	else
		collect(words, stretch, offset >> LEAST_SHIFT, bytes - skipped, mask, LEAST_SHIFT,
			word, by_instruction);
	/* At once, but not all at once: beyond some, processors fetch none. */
	fetch(words);
}

static void add_plainly(struct reference_words *words, const struct stretch *stretch,
			uint64_t *address)
{
	add(words, stretch, address, 8, false);
}

static void add_narrow(struct reference_words *words, const struct stretch *stretch,
		       uint64_t *address)
{
	add(words, stretch, address, 4, false);
}

#ifdef __x86_64__
__attribute__((target("popcnt"))) static void add_by_counting(struct reference_words *words,
							      const struct stretch *stretch,
							      uint64_t *address)
{
	add(words, stretch, address, 8, true);
}

__attribute__((target("popcnt"))) static void add_narrow_by_counting(struct reference_words *words,
								     const struct stretch *stretch,
								     uint64_t *address)
{
	add(words, stretch, address, 4, true);
}
#endif

void reference_words_init_plain(struct reference_words *words, const struct allocation_index *index,
				const struct bitmap *owners)
{
	*words = (struct reference_words){
		.index = index,
		.owners = owners,
		.filter = word_filter_for(allocation_bounds(index), 8),
		.add = add_plainly,
	};
}

void reference_words_init(struct reference_words *words, const struct allocation_index *index,
			  const struct bitmap *owners, unsigned int word_size)
{
	const bool is_narrow = word_size == sizeof(uint32_t);

	reference_words_init_plain(words, index, owners);
	if (is_narrow) {
		words->filter = word_filter_for(allocation_bounds(index), word_size);
		words->add = add_narrow;
	}
#ifdef __x86_64__
	if (__builtin_cpu_supports("popcnt"))
		words->add = is_narrow ? add_narrow_by_counting : add_by_counting;
#endif
}

size_t reference_words_look_up(struct reference_words *words, bool is_end, size_t *ret_first,
			       allocation_id *ret_targets, uint64_t *ret_headers)
{
	size_t slot = words->head % WORDS_AROUND;
	size_t count = words->tail - words->head;

	/* Words of a stretch that were not collected yet. */
	fetch(words);
	if (!is_end && count < 2 * MOST_ADDRESSES)
		return 0;
	count = MIN(count, MOST_ADDRESSES);
	*ret_first = slot;
	*ret_headers = words->index->lookups_end(words->index, words->lookups + slot, count, false,
						 ret_targets);
	words->head += count;
	/* Batches begin where none goes beyond the last slot. */
	if (words->head == words->tail)
		words->head = words->tail = words->begun = 0;
	return count;
}
