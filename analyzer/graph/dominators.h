/*
 * The dominator tree of the used allocations: what each of them alone holds.
 *
 * An allocation dominates those to which every path leads through it, itself included: without it,
 * they would not be held. Paths begin at the roots, each of which is one however many of its words
 * refer to the heap, and at the entries, such as leak roots. What an allocation retains is what it
 * dominates; so a root, or nothing, holds it alone.
 *
 * Roots are ranked: what a root of an earlier rank leads to is not shared with later ones, as a
 * word that passes on a stack does not hold what a static variable holds.
 *
 * Nothing that is lost holds what is alive: references from leaked memory to anchored memory, as
 * from a stale word, do not count. Nor do those from leaked memory to garbage, which its collector
 * frees regardless of them.
 *
 *	entry                        the tree
 *	  a ──→ b ──→ d ──→ e        a ┬─ b
 *	  └───→ c ────┘                ├─ c      to d, two ways lead
 *	                               └─ d ── e
 *
 * The tree is kept as a row in which what an allocation dominates follows it without a gap: a, b,
 * c, d, e. So it is a stretch of the row, and what is retained is the difference of two sums.
 *
 * It costs 10.5 bytes for an allocation. While it is made: 8, and 8 for each reference that leads
 *to what a depth-first search has seen, but for those back to where the search came from; then,
 * without the graph, 12 more.
 */
#pragma once

#include "analyzer/graph/dominator_input.h"

struct dominators;

/* Used allocations to which neither leads are entries, too, where nothing else holds them. */
struct error *dominators_create(const struct dominators_input *input, struct dominators **ret);
void dominators_destroy(struct dominators *dominators);
DEFINE_CLEANUP(dominators_destroy, struct dominators *)

/* All used allocations, in the order of the row. */
size_t dominators_count(const struct dominators *dominators);
allocation_id dominators_at(const struct dominators *dominators, size_t position);

/* The end of the positions that the one at position dominates. */
size_t dominators_end(const struct dominators *dominators, size_t position);

/* The positions of what a root alone holds: [begin, end). */
struct positions {
	uint32_t begin, end;
};

struct positions dominators_root(const struct dominators *dominators, size_t root);

/* The root that alone holds what stands at position, or NO_ROOT: several roots do, or none. */
size_t dominators_root_of(const struct dominators *dominators, size_t position);
static const size_t NO_ROOT = SIZE_MAX;

/*
 * The first root that leads to what stands at position, or NO_ROOT: none does, or a search by
 * levels found the tree, which does not follow one root after the other.
 */
size_t dominators_first_root(const struct dominators *dominators, size_t position);

/* Call this before the two below are asked (STAGE_RETAINED); 4 bytes more for an allocation. */
struct error *dominators_find_positions(struct dominators *dominators);

/* Find an allocation's position in the row; only used allocations have one. */
bool dominators_position(const struct dominators *dominators, allocation_id id, size_t *ret);

/* The bytes that it retains, its own included; 0 if it is free. */
uint64_t dominators_retained(const struct dominators *dominators, allocation_id id);

/* The bytes that stand in the row at or behind begin, and before end. */
uint64_t dominators_bytes(const struct dominators *dominators, size_t begin, size_t end);
