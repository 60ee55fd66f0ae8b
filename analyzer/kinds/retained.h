/*
 * The bytes that groups of allocations retain.
 *
 * A group retains what its members dominate, each byte once: a member below another one of its
 * group adds nothing. As what an allocation dominates follows it in the row of the tree, one pass
 * is enough, in which each group knows up to where it has counted.
 */
#pragma once

#include "analyzer/graph/dominators.h"

#include <stdint.h>

#define NO_GROUP UINT32_MAX

/*
 * Add to ret_bytes, by group, what each retains. groups has the group of each allocation, or
 * NO_GROUP. If merged is not NULL, several groups are taken for one: it has the number of that one
 * by group.
 */
struct error *retained_by_group(const struct dominators *tree, const uint32_t *groups,
				const uint32_t *merged, size_t group_count, uint64_t *ret_bytes);
