/*
 * The allocations that groups reach, and their total sizes.
 *
 * A group reaches its members and all that they lead to, each allocation once. Other than what it
 * retains, that may be shared with others. To mark from each group anew would take as long as there
 * are groups; so 64 of them go over the graph together, a bit for each, handed on from component to
 * component. The components come in an order in which each is met before all that it leads to: one
 * pass is enough.
 */
#pragma once

#include "analyzer/graph/components.h"
#include "analyzer/kinds/retained.h"

struct reach_input {
	const struct graph *graph;
	const struct allocation_index *index;
	const struct bitmap *members; /* the allocations to reach */
	const uint32_t *groups;	      /* by allocation, or NO_GROUP */
	size_t group_count;	      /* higher numbers: no group */
	struct memory_account *account;
	struct progress *progress;
};

/*
 * How many of the groups may be asked for: a core may have one for each of its allocations. 64
 * groups take a step, of about 20 ns, for each allocation and reference. A step for two bytes of
 * the core is as much as it may take, or those of some seconds.
 */
size_t reach_most_groups(const struct reach_input *input, uint64_t bytes);

/* Put into ret_bytes, by group, the bytes that each reaches. */
struct error *reach_by_group(const struct reach_input *input, uint64_t *ret_bytes);

/* The bytes that one of the members reaches. */
struct error *reach_of(const struct reach_input *input, allocation_id id, uint64_t *ret_bytes);
