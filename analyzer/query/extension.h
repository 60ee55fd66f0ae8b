/*
 * Extending a set by rules, from each member to what it leads to or what leads to it, depth first.
 *
 * Members of the set are looked at in their order, in the base state. For each rule of a state, in
 * the order given, what it brings in is looked at by address; what is new becomes a member, and is
 * extended in its turn before the next is looked at. No allocation is extended twice: the state in
 * which it is reached first counts.
 *
 * The stack holds only allocations of which something is still to be looked at, and of each just
 * that, so a list of any length costs nothing to follow.
 *
 * Where there are no states and nobody asks for the order, what is reached is the same in any
 * order. Several allocations are followed side by side then, the memory that each needs being
 * fetched while the others are worked on.
 */
#pragma once

#include "analyzer/query/extension_rules.h"
#include "analyzer/query/members.h"
#include "analyzer/query/reference_choice.h"

/* Parameters of an extension. */
struct extension {
	const struct extension_rules *rules; /* checked */
	struct reference_choice *choice;
	bool allow_missing; /* kinds that nothing is of are no mistake */
	bool comment;	    /* note how each member was reached */
	bool note_states;   /* and in which state */
	bool any_order;	    /* members need none */
};

/* Members become those of the extended set, in the order of their finding unless they need none. */
struct error *extension_apply(const struct extension *extension, struct members *members);
