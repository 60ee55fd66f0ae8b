/*
 * Collects the words of allocations that may be references.
 *
 * Allocations that are near each other are read in one go, as a stretch: its words are filtered 64
 * at a time, and whose each of the few that are left is, the index tells by counting bits. Where it
 * does not know from these where allocations end, it is asked for their sizes.
 */
#pragma once

#include "analyzer/heap/index_parts.h"
#include "analyzer/heap/word_filter.h"
#include "analyzer/image/view.h"

/*
 * Words that are collected and looked up go around: while some are collected, what the lookups of
 * MOST_ADDRESSES before them need is fetched.
 */
enum { WORDS_AROUND = 4 * MOST_ADDRESSES };

struct stretch;

struct reference_words {
	const struct allocation_index *index;
	const struct bitmap *owners; /* whose words may be references */
	struct word_filter filter;
	/*
	 * Collect from the stretch's 64 words or fewer at *address, which goes on behind them.
	 * There must be room for FILTER_WORDS more.
	 */
	void (*add)(struct reference_words *words, const struct stretch *stretch,
		    uint64_t *address);
	/* Words in the heap, where they stand, and in which allocation. */
	uint64_t words[WORDS_AROUND], places[WORDS_AROUND];
	allocation_id sources[WORDS_AROUND];
	size_t head, tail; /* there are those from head on, below tail */
	size_t begun;	   /* below this, they are being looked up */
	size_t hint;	   /* for these */
	struct lookup lookups[WORDS_AROUND];
};

/* Allocations of one region, and what the dump has of [start, end). */
struct stretch {
	size_t region;
	allocation_id first, end; /* ids from first on, below end */
	struct memory_range range;
	const uint8_t *bytes;
};

/* Initialise without words. Words have 8 or 4 bytes. The arguments are borrowed. */
void reference_words_init(struct reference_words *words, const struct allocation_index *index,
			  const struct bitmap *owners, unsigned int word_size);

/* Like reference_words_init(), without newer instructions, for words of 8 bytes. */
void reference_words_init_plain(struct reference_words *words, const struct allocation_index *index,
				const struct bitmap *owners);

/*
 * The stretch from first on, an owner, with as much below end as can be read together. False: first
 * must be read by itself. *hint is as for allocation_range_near().
 */
bool stretch_find(const struct reference_words *words, struct view *view, allocation_id first,
		  allocation_id end, size_t *hint, struct stretch *ret);

/* Collect from up to 64 words of one allocation; the room is the same. */
static inline void reference_words_add_of(struct reference_words *words, allocation_id source,
					  uint64_t address, const uint8_t *bytes, size_t count)
{
	const unsigned int size = words->filter.word_size;
	uint64_t mask = word_filter_mask(&words->filter, bytes, count);

	for (; mask; mask &= mask - 1) {
		uint64_t at = size * (uint64_t)__builtin_ctzll(mask);
		size_t slot = words->tail++ % WORDS_AROUND;

		words->words[slot] = load_word(bytes + at, size);
		words->places[slot] = address + at;
		words->sources[slot] = source;
	}
}

/*
 * Look up MOST_ADDRESSES words if there are so many more, or with is_end what there is. Returns how
 * many these are, *ret_first being the slot of the first; 0: not yet, or no more.
 */
size_t reference_words_look_up(struct reference_words *words, bool is_end, size_t *ret_first,
			       allocation_id *ret_targets, uint64_t *ret_headers);
