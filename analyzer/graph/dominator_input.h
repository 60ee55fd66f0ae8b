/*
 * The heap whose dominators are looked for; see dominators.h.
 */
#pragma once

#include "analyzer/graph/embedding.h"
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

/* Allocations of a later rank hold nothing of an earlier one. */
enum dominator_rank { RANK_ANCHORED, RANK_GARBAGE, RANK_LEAKED, RANKS };

static inline bool dominator_is_of_rank(const struct dominators_input *input, allocation_id id,
					enum dominator_rank rank)
{
	switch (rank) {
	case RANK_ANCHORED:
		return bitmap_get(input->anchored, id);
	case RANK_GARBAGE:
		return !bitmap_get(input->leaked, id);
	default:
		return true;
	}
}

/* The edges of an allocation, or of a root: these have the ids from first_root on. */
static inline struct edges dominator_edges(const struct dominators_input *input,
					   allocation_id first_root, allocation_id id)
{
	const struct dominator_roots *roots = &input->roots;
	size_t root = id - first_root;

	if (id < first_root)
		return graph_outgoing(input->graph, id);
	return (struct edges){ roots->targets + roots->offsets[root],
			       roots->offsets[root + 1] - roots->offsets[root] };
}

/* True if the reference does not hold its target. */
static inline bool dominator_is_void(const struct dominators_input *input, allocation_id first_root,
				     allocation_id id, allocation_id target)
{
	if (id >= first_root)
		return false;
	return (input->regions && bitmap_get(input->regions, target)) ||
	       embedding_is_void(input->own, id, target);
}
