/*
 * Splits allocations into the bytes that their users asked for and those that were added, if that
 * is known.
 *
 *	| contents                  | spare room     | slack      |
 *	start        asked for, if that is known ----^   given ---^
 *
 * A container's parts tell it by their owner (see patterns_measure()). Of other allocations of
 * malloc() that are a text up to their end, more than what malloc() adds left out, just so much was
 * asked for; GC_debug_malloc() notes it. Of all others, everything is contents.
 */
#pragma once

#include "analyzer/account/contents.h"
#include "analyzer/analysis/analysis.h"
#include "analyzer/classify/reader.h"

struct extent {
	uint64_t given;	      /* bytes, from the allocation's start on */
	uint64_t start, size; /* of the contents: an address, and bytes */
	uint64_t spare, slack;
	bool knows_spare, knows_slack;
	bool is_text; /* nothing but a text and its end */
	/* Spare room is somewhere in the contents, which so tell nothing. */
	bool is_mixed;
};

/* Reads extents; one for each thread. */
struct extents {
	const struct analysis *analysis;
	const struct patterns *patterns;
	const struct bitmap *managed; /* by a collector; or NULL */
	struct heap_bounds bounds;
	struct reader reader;
	struct view view;
	size_t hint;
};

/*
 * Find what extents are known by: patterns, and owners unless these would say nothing.
 */
struct error *extents_need(struct analysis *analysis);

/* Needs extents_need(). */
void extents_init(struct extents *extents, const struct analysis *analysis);

/* The extent of a used allocation. */
struct extent extent_of(struct extents *extents, allocation_id id);
