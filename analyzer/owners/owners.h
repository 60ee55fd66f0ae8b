/*
 * The ownership tree: who holds the memory, by kind, from the roots down.
 *
 *	cache (libfoo.so)
 *	  struct table                1 allocation
 *	    struct row              100 allocations     each dominated by a table
 *	      strings               100 allocations
 *
 * It is the dominator tree with allocations of a kind joined that hang on the same path of kinds,
 * but for those that retain at least a fiftieth of what is used, and more than themselves: each
 * has a node of its own. The
 * body of a container, as the table of a dict, is part of it. What links to its like, as in a list
 * or a tree, is counted where the first of them is. There are at most MOST_DEPTH nodes on a path.
 *The more nodes there are, the less deep are new ones, up to MOST_NODES.
 *
 * Members are counted in each node, in three measures. All nodes together count each member once,
 * so the sums are those of `count SET`. Free members are below a root of their own.
 *
 * It costs 64 bytes a node, and 4 an allocation if asked for the node of each; while it is made, 2
 * bytes more for each allocation and each top of the dominator tree, and 30 a node.
 */
#pragma once

#include "analyzer/owners/owner_names.h"
#include "analyzer/owners/owner_roots.h"

enum owner_measure {
	MEASURE_OWN,	  /* the members */
	MEASURE_RETAINED, /* the members and all that they dominate, each once */
	MEASURE_LEAKED,	  /* the members that are leaked */
	MEASURES
};

struct owner_amount {
	uint64_t count, bytes;
};

/* A parent comes before its children. */
struct owner_node {
	uint32_t parent; /* of roots: 0, which stands for the process; and its own is 0 */
	uint32_t name;
	uint32_t depth;
	bool is_one;	       /* allocation, and what links to its like from there */
	bool in_body;	       /* a body of the parent holds it */
	allocation_id example; /* the member that dominates most; NO_ALLOCATION: it has none */
	struct owner_amount total[MEASURES]; /* with all nodes below */
};

enum { MOST_DEPTH = 64, MOST_NODES = 1 << 16 };

struct owners {
	struct owner_names names;
	HASH_TABLE(struct owner_node) nodes; /* by parent and name; in the end, an array only */
	ARRAY(uint32_t)
	of; /* if asked for: the node of each allocation that is used, or a member */
};

/* Build the dominators, and what the names of kinds rest on. */
struct error *owners_need(struct analysis *analysis);

/*
 * Build what is needed, and the tree of those members; ret is all zeros. with_nodes: the node of
 * each is noted.
 */
struct error *owners_find(struct analysis *analysis, const struct bitmap *members, bool with_nodes,
			  struct owners *ret);
void owners_deinit(struct owners *owners);
DEFINE_DEINIT(owners_deinit, struct owners)
