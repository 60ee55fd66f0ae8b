/*
 * Strongly connected components: allocations that all lead to each other, as a ring does. Most are
 * alone in theirs.
 *
 * The vertices are the members of a set, numbered densely by address, as there may be few of them;
 * edges to what is no member do not count. Components are numbered as they are completed,
 * successors first: an edge never leads to a component of a higher number. So a loop that goes
 * through them backwards meets each before all that it refers to.
 */
#pragma once

#include "analyzer/graph/graph.h"

struct components;

/* All that is given is borrowed. */
struct error *components_create(const struct graph *graph, const struct bitmap *members,
				struct memory_account *account, struct progress *progress,
				struct components **ret);
void components_destroy(struct components *components);
DEFINE_CLEANUP(components_destroy, struct components *)

uint32_t component_count(const struct components *components);

/* The component of a member. */
uint32_t component_of(const struct components *components, allocation_id id);

/* The members, those of a component next to each other, by its number. */
size_t component_member_count(const struct components *components);
allocation_id component_member(const struct components *components, size_t place);

/*
 * The component whose members stand at [*ret_begin, end): the last one of those before end, which
 * is at least 1.
 */
uint32_t component_before(const struct components *components, size_t end, size_t *ret_begin);
