/*
 * The aligned words of a range of memory that the dump has, one by one; and single words of
 * allocations.
 */
#ifndef ANALYZER_QUERY_WORD_SCAN_H
#define ANALYZER_QUERY_WORD_SCAN_H

#include "analyzer/analysis/analysis.h"

struct word_scan {
	const struct image *image;
	uint64_t at, end;
	const uint8_t *bytes; /* at at; NULL: to be found */
	uint64_t known;	      /* bytes there in a row */
};

/* Start is aligned. */
void word_scan_init(struct word_scan *scan, const struct image *image, uint64_t start,
		    uint64_t end);

/* The next word and its address; false at the end. What is absent is left out.
 */
bool word_scan_next(struct word_scan *scan, uint64_t *ret_address, uint64_t *ret_word);

/* The word at that offset of the allocation, if it is wholly in it. */
bool word_of_allocation(const struct analysis *analysis, allocation_id id, uint64_t offset,
			uint64_t *ret);

#endif
