/*
 * The referrers of some allocations, their referrers, and so on: the way up from objects to their
 * holders, level by level.
 *
 *	level   2           1           0
 *	     registry ──→ Hash ──→ Session    the targets
 *	                  cache ─────┘
 *
 * A reference has the level of what it leads to, the least that this has.
 */
#pragma once

#include "analyzer/analysis/analysis.h"

struct holding {
	allocation_id from, to;
	uint64_t offset; /* in from, of the reference */
	uint64_t level;
};

struct holders_input {
	struct analysis *analysis;    /* STAGE_INCOMING, _OWNERS */
	const struct bitmap *live;    /* which may hold anything */
	const allocation_id *targets; /* without repeats */
	size_t target_count;
	uint64_t levels; /* so many; 0: all */

	/* Returns false to end the visit. */
	bool (*visit)(void *data, const struct holding *holding);
	void *data;
};

/*
 * Visit each reference once, the lowest levels first. Those that stand where nothing is kept any
 * more hold nothing.
 */
struct error *holders_visit(const struct holders_input *input);
