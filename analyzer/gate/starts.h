/*
 * References to the start of allocations, for sources of which nothing is known: memory that was
 * never written since malloc() gave it out holds what was there before, and that are links of
 * malloc's lists above all, which lead into the tail of whatever is there now. A program refers to
 * starts, mostly.
 */
#ifndef ANALYZER_GATE_STARTS_H
#define ANALYZER_GATE_STARTS_H

#include "analyzer/analysis/analysis.h"

/* So many words of an allocation are looked at. */
enum { MOST_START_WORDS = 512 };

/* The allocations that source refers to the start of, in order of its words. */
size_t starts_find(const struct analysis *analysis, allocation_id source,
		   allocation_id ret[static MOST_START_WORDS]);

#endif
