/*
 * Where what is in use hangs in the dominator tree: what roots refer to; for what leaked, the leak
 * roots; and for what a collector will free, and what only that leads to, the same found among
 * these.
 */
#ifndef ANALYZER_GRAPH_ENTRIES_H
#define ANALYZER_GRAPH_ENTRIES_H

#include "analyzer/graph/leaks.h"
#include "analyzer/graph/liveness.h"
#include "analyzer/graph/roots.h"

struct entries_input {
	const struct graph *graph;
	const struct allocation_index *index;
	const struct roots *roots;
	const struct leaks *leaks;
	const struct liveness *liveness;
	struct memory_account *account;
	struct progress *progress;
};

/* Into ret, which is not initialized. */
struct error *entries_collect(const struct entries_input *input, struct bitmap *ret);

#endif
