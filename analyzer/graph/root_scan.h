/*
 * Finds the words of memory outside of heaps that refer to allocations.
 */
#ifndef ANALYZER_GRAPH_ROOT_SCAN_H
#define ANALYZER_GRAPH_ROOT_SCAN_H

#include "analyzer/heap/word_filter.h"
#include "analyzer/image/image.h"

struct root_scan {
	const struct image *image;
	const struct allocation_index *index;
	struct word_filter filter;
	/* Called for each reference, at where, until it returns false. */
	bool (*found)(void *data, uint64_t where, allocation_id target);
	void *data;
	/* Its own; 0 at first. Words that are to be looked up together. */
	uint64_t words[MOST_ADDRESSES], places[MOST_ADDRESSES];
	size_t count, hint;
};

/* Call found for each word of the range that is a reference: aligned ones, and in code all. */
void root_scan_range(struct root_scan *scan, struct memory_range range, bool is_code);

#endif
