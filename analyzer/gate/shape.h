/*
 * What hangs on a leak root, looked at from the root, and its fingerprint.
 */
#ifndef ANALYZER_GATE_SHAPE_H
#define ANALYZER_GATE_SHAPE_H

#include "analyzer/analysis.h"

/*
 * Of what a root leads to, only so many allocations are looked at: a structure
 * of a million has no more kinds near its root than one of hundreds.
 */
enum { MOST_SHAPE_NODES = 256 };

/* What leaks are looked for in; all borrowed. */
struct shape_context {
	struct analysis *analysis;
	const struct patterns *patterns;
	const struct bitmap *leaked;
};

/* Members of the root's component tell it from what hangs on it. */
uint64_t shape_fingerprint(const struct shape_context *context,
			   allocation_id root);

#endif
