/*
 * Allocations that belong to one another: an allocation's parent frees it, and nothing else holds
 * it, whatever refers to it.
 *
 * Some allocators put a label before what they return (label.h), and links to a parent, a first
 * child, and siblings, as talloc does. None is known by name here. Of two pairs of words, each
 * leads to where the other one of its pair leads back; each allocation has at most one link
 * upwards, to the parent or to the sibling before it; and what is above all has a child and no
 * sibling. An allocation that was cut into pieces with links belongs to what has its first piece.
 */
#pragma once

#include "analyzer/classify/early_words.h"
#include "analyzer/graph/graph.h"

/* An allocation that another one has. */
struct nesting_link {
	allocation_id parent, child;
};

struct hierarchy {
	ARRAY(struct nesting_link) links; /* by parent, without cycles */
	struct bitmap nested;		  /* the children */
	size_t most_children;		  /* of one parent */
};

/*
 * Find what belongs to others among the anchored allocations, which are anchored, too. ret is all
 * zeros; without any, there are no links, and no bits.
 */
struct error *hierarchy_find(const struct image *image, const struct program *program,
			     const struct allocation_index *index, const struct bitmap *anchored,
			     struct memory_account *account, struct hierarchy *ret);
void hierarchy_deinit(struct hierarchy *hierarchy);
DEFINE_DEINIT(hierarchy_deinit, struct hierarchy)

/* A copy of the graph in which only its parent refers to what has one. */
struct error *hierarchy_graph(const struct hierarchy *hierarchy, const struct graph *graph,
			      struct memory_account *account, struct progress *progress,
			      struct graph **ret);
