/* The structure below a leak root, and its fingerprint. */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/base/array.h"

/*
 * Limits for allocations and references below a root: a structure of a million has no more kinds
 * near its root than one of hundreds, and many roots may lead to the same one.
 */
enum { MOST_SHAPE_NODES = 256, MOST_SHAPE_STEPS = 4096, SHAPE_SLOTS = 512 };

/* The inputs of the search; borrowed except for the hashes. */
struct shape_context {
	struct analysis *analysis;
	const struct patterns *patterns;
	const struct bitmap *leaked;
	ARRAY(uint64_t) hashes; /* by allocation, 0: not looked at */
};

struct error *shape_context_init(struct shape_context *context, struct analysis *analysis,
				 const struct patterns *patterns, const struct bitmap *leaked);
void shape_context_deinit(struct shape_context *context);
DEFINE_DEINIT(shape_context_deinit, struct shape_context)

/* The allocations near a root, breadth first, and which lead back to it. */
struct shape {
	allocation_id ids[MOST_SHAPE_NODES];
	bool in_cycle[MOST_SHAPE_NODES]; /* the root itself is */
	size_t count;
	/*
	 * The member of the cycle that the leak is named by: that is the same one wherever it lies,
	 * unlike that of the lowest address.
	 */
	allocation_id name_giver;
	uint64_t fingerprint;
};

void shape_find(struct shape_context *context, const struct leak_root *root, struct shape *ret);
