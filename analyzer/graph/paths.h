/*
 * The shortest way along references from one of a set of allocations to a given one.
 *
 * Two breadth-first searches meet: one goes back from the target over the incoming references, one
 * forth from the set. The one that has visited less goes on, so neither visits many more
 * allocations than the other one alone would, and mostly far fewer.
 *
 * Of several shortest paths, it is the one whose last reference comes from the lowest address, then
 * the one before, and so on.
 *
 * For many targets it is quicker to compute once how far each allocation is from the set: going
 * back from a target, the first referrer that is one step nearer is the next on that path.
 */
#pragma once

#include "analyzer/graph/graph.h"

/* From a member of the set to the target, both included. */
struct path {
	allocation_id *ids;
	size_t count;	/* 0: no member leads there */
	size_t gap;	/* behind the first PATH_END, so many are left out */
	size_t reached; /* how many allocations were looked at to find it */
};

/* At least this many are kept at each end. */
enum { PATH_END = 11 };

void path_deinit(struct path *path);
DEFINE_DEINIT(path_deinit, struct path)

/*
 * Find the path from a member of sources to target. incoming is the graph transposed, of as many
 * allocations as sources has bits; both may lack rows of what leads to no target.
 */
struct error *path_find(const struct graph *graph, const struct graph *incoming,
			const struct bitmap *sources, allocation_id target,
			struct memory_account *account, struct progress *progress,
			struct path *ret);

/*
 * The distance of every allocation from a set of them; 4 bytes for each, and 4 more once a long
 * path was asked for.
 */
struct distances;

struct error *distances_create(const struct graph *graph, const struct bitmap *sources,
			       struct memory_account *account, struct progress *progress,
			       struct distances **ret);
void distances_destroy(struct distances *distances);
DEFINE_CLEANUP(distances_destroy, struct distances *)

/*
 * The path that path_find() finds; of a long one, its ends. So those of all members of a list do
 * not take the square of its length.
 */
struct error *distances_path(struct distances *distances, const struct graph *incoming,
			     allocation_id target, struct path *ret);
