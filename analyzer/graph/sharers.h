/*
 * Finds the variables that share what none of them alone holds.
 *
 * It is found for those tops of the dominator tree that retain much. What refers to such a top lies
 * below a variable, or below another top that is shared by variables: these share it, too.
 *
 *	server ──→ a ──→ table      table: shared by server and cache
 *	cache  ─────────↗
 *
 * As for the dominators, a variable that lasts less shares nothing with those that last longer. And
 * words without a name share nothing with a variable of their module that has one: it is the owner
 * then, if no other is left.
 */
#pragma once

#include "analyzer/graph/variables.h"

struct sharers;

struct sharers_input {
	const struct graph *graph;
	const struct allocation_index *index;
	const struct dominators *dominators;
	const struct variables *variables; /* with their targets */
	const struct bitmap *anchored;
	struct memory_account *account;
	struct progress *progress;
};

/* True if there are such tops; only then the graph is needed. */
bool sharers_are_there(const struct sharers_input *input);

struct error *sharers_create(const struct sharers_input *input, struct sharers **ret);
void sharers_destroy(struct sharers *sharers);
DEFINE_CLEANUP(sharers_destroy, struct sharers *)

/* How many tops are known. */
size_t sharers_count(const struct sharers *sharers);

/* Numbers of variables that share a top, in their order: those with a name come first. */
struct shared_by {
	const uint32_t *variables;
	size_t count;  /* 0: it is not known */
	bool has_more; /* than were found */
};

struct shared_by sharers_of(const struct sharers *sharers, allocation_id top);

/* The variable that owns the top, or NO_ROOT. */
size_t sharers_owner(const struct sharers *sharers, allocation_id top);

/* Allocations that a variable owns so, besides those that it alone holds. */
struct owned_tops {
	uint64_t count, bytes; /* of allocations */
};

struct owned_tops sharers_owned(const struct sharers *sharers, size_t variable);
