/*
 * Chains on the way to an allocation, such as a list: allocations of one kind, each of which the
 * one before refers to by the same member. They are one step of the way.
 *
 *	head ──→ n1 ──.next──→ n2 ──.next──→ n3 ──.text──→ s	n2 and n3 are one step
 */
#pragma once

#include "analyzer/kinds/kind_key.h"

static const uint64_t NO_OFFSET = UINT64_MAX;

/*
 * The offset of the first word of an allocation that refers to another; not searched in a large
 * one.
 */
uint64_t link_offset(const struct analysis *analysis, allocation_id from, allocation_id to);

/*
 * How many of the allocations behind ids[0], of count in all, are one step: 1, or the links of a
 * chain. Nodes of a container, as those of a tree, are one whatever the member. For patterns and
 * typing see kind_typed().
 */
size_t links_in_step(const struct analysis *analysis, const struct patterns *patterns,
		     const struct typing *typing, const allocation_id *ids, size_t count);
