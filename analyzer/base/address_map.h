/*
 * A map from addresses to small numbers: what was found out of an address, as an index into
 * somebody's list.
 *
 * A hash table of open addressing, at most half full.
 */
#ifndef ANALYZER_BASE_ADDRESS_MAP_H
#define ANALYZER_BASE_ADDRESS_MAP_H

#include "analyzer/base/memory.h"

#include <stdint.h>

enum { NOT_IN_MAP = UINT32_MAX };

struct address_map {
	struct memory memory;
	uint64_t factor; /* of the hash */
	size_t capacity; /* a power of two, or 0 */
	size_t count;
};

void address_map_init(struct address_map *map, struct memory_account *account);
void address_map_deinit(struct address_map *map);
DEFINE_DEINIT(address_map_deinit, struct address_map)

/* The address's number, or NOT_IN_MAP. */
uint32_t address_map_find(const struct address_map *map, uint64_t address);

/* The address is not in the map yet, the number not NOT_IN_MAP. */
struct error *address_map_add(struct address_map *map, uint64_t address, uint32_t number);

#endif
