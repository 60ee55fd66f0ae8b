/*
 * A map from addresses to small numbers.
 */
#pragma once

#include "analyzer/base/table.h"

enum { NOT_IN_MAP = UINT32_MAX };

struct address_number {
	uint64_t address;
	uint32_t number;
};

/* { .memory.account = account } is the empty one; table_release() releases it. */
struct address_map {
	HASH_TABLE(struct address_number);
};

/* The address's number, or NOT_IN_MAP. */
static inline uint32_t address_map_find(const struct address_map *map, uint64_t address)
{
	const struct address_number *known =
		table_find(map, address, item, item->address == address);

	return known ? known->number : NOT_IN_MAP;
}

/* The address is not in the map yet, the number not NOT_IN_MAP. */
static inline struct error *address_map_add(struct address_map *map, uint64_t address,
					    uint32_t number)
{
	return table_append(map, address, (struct address_number){ address, number });
}
