/*
 * The name of each used allocation's kind, as a number.
 *
 * Kinds are numbered in the order of their names, so rows can be handed out grouped and ordered by
 * kind without being sorted by SQLite, and a condition on the name is a stretch of that order.
 */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/base/array.h"
#include "analyzer/kinds/kind_key.h"

struct named_kind {
	kind_key key; /* one of those that have the name, without a size */
	char *name;   /* escaped; owned */
	uint64_t count, bytes;
	uint32_t first; /* place of its first member in the order */
};

struct named_kinds {
	ARRAY(struct named_kind) list;
	ARRAY(uint32_t) numbers;    /* by allocation: its kind's place in the list */
	ARRAY(allocation_id) order; /* used allocations by kind, then by id */
	bool known;
};

/* Name them all, unless that was done before; builds what it needs. */
struct error *named_kinds_find(struct analysis *analysis, struct named_kinds *kinds);
void named_kinds_deinit(struct named_kinds *kinds);

/* The number of the kind of that name; the count of kinds if there is none. */
size_t named_kinds_search(const struct named_kinds *kinds, const char *name);

/* "type", "pattern", "signature", "identity" or "nothing". */
const char *kind_known_by(kind_key key);
