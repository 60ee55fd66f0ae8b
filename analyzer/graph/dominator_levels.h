/*
 * Dominators by breadth-first search, for large heaps whose references lead far.
 *
 * A depth-first search waits for memory at each step; a breadth-first one knows what it needs next,
 * and has it fetched. Numbers are given in the order of the search, so that what dominates has the
 * lower one. At first each vertex is dominated by its parent in the search; then the dominator of
 * each other reference's target becomes the nearest that also dominates the source, over and over,
 * until none changes. Random heaps need three turns, those with lists and trees some more, in which
 * little changes. Lists that are linked in both directions may need many: they are given up.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/graph/dominator_input.h"

/* A vertex; 0 is the virtual root. */
struct level_vertex {
	uint32_t dominator;
	union {
		allocation_id id; /* until all have numbers */
		/* Then the nearest on the way up that is among the first numbers, or itself. */
		uint32_t top;
	};
};

struct dominator_levels {
	ARRAY(uint32_t) numbers; /* by id: of allocations, then of roots; 0: it is not used */
	struct memory vertices;	 /* struct level_vertex, by number */
	uint32_t count;		 /* of numbers given, 0 not counted */
};

/*
 * Find the dominators of all used allocations. Not found: the heap is not of that kind, or
 * something is used to which neither roots nor entries lead. ret is zeros before.
 */
struct error *dominator_levels_find(const struct dominators_input *input,
				    struct dominator_levels *ret, bool *ret_found);
void dominator_levels_deinit(struct dominator_levels *levels);
DEFINE_DEINIT(dominator_levels_deinit, struct dominator_levels)
