/*
 * The ownership tree as rows: owners above what they alone hold.
 */
#pragma once

#include "analyzer/owners/frames.h"
#include "analyzer/report/report.h"

struct owner_tree_limits {
	uint64_t depth; /* levels of owners, at most OWNER_TREE_DEEPEST */
	uint64_t top;	/* of what each holds */
	uint64_t least; /* bytes retained */
};

enum { OWNER_TREE_DEEPEST = 127 };

/*
 * The tree of those members, without the node of each, and its frames; both are all zeros. The
 * owners outlive the frames.
 */
struct error *owner_tree_find(struct analysis *analysis, const struct bitmap *members,
			      struct owners *ret_owners, struct frames *ret_frames);

/* Write the frames within the limits, as a table. */
void owner_tree_write(const struct analysis *analysis, const struct frames *frames,
		      const struct owner_tree_limits *limits, struct report *report);
