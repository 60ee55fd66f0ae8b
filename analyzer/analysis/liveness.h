/*
 * The state of each allocation: in use or free, and if in use, whether anything still needs it.
 *
 * An allocation is in exactly one state, the first whose set it is in. What no stage has found yet
 * does not show: before STAGE_REACHABILITY, all that is in use is STATE_USED; before
 * STAGE_COLLECTOR, nothing is at risk. Whether a leaked allocation is unreferenced, or likely held
 * after all (likely_held.h), is a further question about it.
 */
#pragma once

#include "analyzer/analysis/analysis.h"

enum live_state {
	STATE_NONE,
	STATE_AT_RISK, /* anchored, but nothing that a collector sees */
	STATE_ANCHORED,
	STATE_GARBAGE,
	STATE_HELD, /* by garbage */
	STATE_LEAKED,
	STATE_UNREFERENCED, /* leaked, and no other leaked allocation refers to it */
	STATE_USED,
	STATE_UNSWEPT, /* the free ones from here on */
	STATE_CACHED,
	STATE_FREE,
	LIVE_STATES,
};

enum live_state liveness_of(const struct analysis *analysis, allocation_id id);

/* The allocations in that state or a narrower one; NULL: there are none, or it has no set. */
const struct bitmap *liveness_set(const struct analysis *analysis, enum live_state state);

/* "leaked"; "Leaked"; "a leaked allocation". */
const char *liveness_word(enum live_state state);
const char *liveness_title(enum live_state state);
const char *liveness_phrase(enum live_state state);
