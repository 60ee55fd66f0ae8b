/*
 * The heap whose dominators are looked for; see dominators.h.
 */
#ifndef ANALYZER_GRAPH_DOMINATOR_INPUT_H
#define ANALYZER_GRAPH_DOMINATOR_INPUT_H

#include "analyzer/graph/graph.h"

/* In order of rank. */
struct dominator_roots {
	size_t count;
	const uint8_t *ranks;
	const uint32_t *offsets; /* of the first target of each, and behind all */
	const allocation_id *targets;
};

struct dominators_input {
	const struct graph *graph;
	struct graph **spent; /* the same, to be destroyed once it was searched; or NULL */
	const struct allocation_index *index;
	struct dominator_roots roots;
	const struct bitmap *regions; /* allocations that only roots hold; or NULL */
	const struct bitmap *own;     /* see embedding.h: held by roots and by these; or NULL */
	const struct bitmap *entries; /* used allocations */
	/* Used ones, too. In neither is garbage, and what only that holds. */
	const struct bitmap *anchored, *leaked;
	bool leads_far; /* take a small heap for one whose references lead far: for tests */
	struct memory_account *account;
	struct progress *progress;
};

#endif
