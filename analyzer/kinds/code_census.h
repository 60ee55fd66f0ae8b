/*
 * The code that a program compiled, by what it is of.
 *
 * Numbers in labels are written as N, as what programs generate differs by these. Blocks that the
 * code is made of count with it, see object_census.h.
 */
#pragma once

#include "analyzer/kinds/object_census.h"
#include "analyzer/program/debug/names.h"

struct code_group {
	/* NULL: not known; the label is, too, where there are several */
	const char *owner, *path, *label;
	uint64_t count, bytes;
	uint64_t labels; /* of the group that differ, numbers left aside */
};

struct code_census {
	struct {
		HASH_TABLE(struct code_group);
	} labels, owners; /* by owner, path and label; and by owner and path; in order */
	struct name_pool names;
};

/* Count those of members. Without an order by count, most bytes come first; ret is all zeros. */
struct error *code_census_take(struct analysis *analysis, const struct bitmap *members,
			       bool by_count, struct code_census *ret);
void code_census_deinit(struct code_census *census);
DEFINE_DEINIT(code_census_deinit, struct code_census)
