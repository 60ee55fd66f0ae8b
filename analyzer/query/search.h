/*
 * Searching all memory whose contents are known, from the dump or from the files that were mapped.
 *
 * Memory is cut into chunks. Threads side by side first count the hits of each; then those chunks
 * that have some are searched once more, and as the counts say where in the list its hits belong,
 * it is in order of address without being sorted. All hits are counted, but only MOST_HITS are
 * kept: a search for zeros would otherwise fill the memory.
 *
 *	chunks    | 4 MB | 4 MB | ...   holes of the dump's file are left out
 *	counts       2      0
 *	hits      a1 a2            ...
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/base/progress.h"
#include "analyzer/image/image.h"

enum { MOST_HITS = 1 << 24 };

enum search_kind {
	SEARCH_WORDS,	 /* aligned words of 8 bytes */
	SEARCH_WORDS_32, /* aligned words of 4 bytes */
	SEARCH_BYTES,
	/* 4 bytes anywhere that, as a signed number added to the address right
	 * behind them, give an address: how code refers to it. */
	SEARCH_RELATIVE,
};

struct search {
	enum search_kind kind;
	uint64_t first;	      /* of the wanted values, or the wanted address */
	uint64_t span;	      /* how many values, from the first on, are wanted */
	const uint8_t *bytes; /* of SEARCH_BYTES; borrowed */
	size_t size;	      /* of them, at least 1 */

	/* True for hits to ignore; called by any thread. NULL: none. */
	bool (*skips)(const void *data, uint64_t address);
	const void *data;
};

/* Addresses, upwards. */
struct hits {
	ARRAY(uint64_t) addresses;
	uint64_t count; /* of all there are */
	uint64_t size;	/* of each */
};

struct error *search_memory(const struct image *image, const struct search *search,
			    struct memory_account *account, struct progress *progress,
			    struct hits *ret);
void hits_deinit(struct hits *hits);
DEFINE_DEINIT(hits_deinit, struct hits)

static inline uint64_t hits_at(const struct hits *hits, size_t number)
{
	return hits->addresses.items[number];
}
