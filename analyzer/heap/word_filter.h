/*
 * Finds which of 64 consecutive words may be addresses of heaps.
 *
 * Few words of a dump are. Loops over all words check 64 at once, with the widest vectors that pay
 * and that the processor has.
 */
#pragma once

#include "analyzer/base/fetch.h"
#include "analyzer/heap/index.h"

#include <string.h>

enum { FILTER_WORDS = 64, FILTER_BYTES = FILTER_WORDS * 8 /* of words of 8 bytes */ };

/* A bit for each of the 64 words, aligned or not, that is within the bounds. */
typedef uint64_t (*word_filter_function)(const uint8_t *bytes, const struct heap_bounds *bounds);

/* One way to filter; all give the same. */
struct word_filter_kind {
	const char *name;
	bool (*runs)(void); /* on this processor */
	word_filter_function filter;
	word_filter_function narrow; /* of words of 4 bytes; bounds are below 4 GiB */
	bool takes_all;		     /* any bounds; else those below 2^63 bytes */
};

/* The number-th kind, the quickest first; NULL: there are no more. */
const struct word_filter_kind *word_filter_kind(size_t number);

struct word_filter {
	struct heap_bounds bounds;
	word_filter_function filter;
	unsigned int word_size; /* 8, or 4 */
};

/* The quickest filter for the bounds, and for words of that size, 8 or 4. */
struct word_filter word_filter_for(struct heap_bounds bounds, unsigned int word_size);

/* A bit for each of up to 64 words of 4 bytes. */
uint64_t word_filter_narrow(const uint8_t *bytes, size_t words, const struct heap_bounds *bounds);

/* A bit for each of up to 64 words: whether it is within the bounds. */
static inline uint64_t word_filter_mask(const struct word_filter *filter, const uint8_t *bytes,
					size_t words)
{
	uint64_t mask = 0;

	if (words == FILTER_WORDS) {
		fetch_next_page(bytes, FILTER_BYTES);
		return filter->filter(bytes, &filter->bounds);
	}
	if (filter->word_size == sizeof(uint32_t))
		return word_filter_narrow(bytes, words, &filter->bounds);
	for (size_t i = 0; i < words; i++) {
		uint64_t word;

		memcpy(&word, bytes + 8 * i, sizeof(word));
		mask |= (uint64_t)heap_bounds_hold(&filter->bounds, word) << i;
	}
	return mask;
}
