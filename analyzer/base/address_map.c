#include "analyzer/base/address_map.h"

#include "analyzer/base/secret.h"

enum { FIRST_CAPACITY = 256 };

/* An empty slot is all zero, so a number is kept one higher. */
struct slot {
	uint64_t address;
	uint64_t number;
};

void address_map_init(struct address_map *map, struct memory_account *account)
{
	*map = (struct address_map){
		.memory = { .account = account },
		.factor = secret_factor(),
	};
}

void address_map_deinit(struct address_map *map)
{
	memory_release(&map->memory);
	map->capacity = map->count = 0;
}

/* The slot of the address, or the empty one where it belongs. */
static struct slot *find_slot(struct slot *slots, size_t capacity, uint64_t factor,
			      uint64_t address)
{
	size_t slot = secret_slot(address, factor, capacity);

	while (slots[slot].number && slots[slot].address != address)
		slot = (slot + 1) & (capacity - 1);
	return &slots[slot];
}

uint32_t address_map_find(const struct address_map *map, uint64_t address)
{
	const struct slot *slot;

	if (!map->capacity)
		return NOT_IN_MAP;
	slot = find_slot(map->memory.bytes, map->capacity, map->factor, address);
	return (uint32_t)(slot->number - 1);
}

static struct error *grow(struct address_map *map)
{
	size_t capacity = map->capacity ? map->capacity * 2 : FIRST_CAPACITY;
	struct memory memory = { .account = map->memory.account };
	const struct slot *slots = map->memory.bytes;
	struct error *error = memory_resize(&memory, capacity * sizeof(struct slot));

	if (error)
		return error;
	for (size_t i = 0; i < map->capacity; i++)
		if (slots[i].number)
			*find_slot(memory.bytes, capacity, map->factor, slots[i].address) =
				slots[i];
	memory_release(&map->memory);
	map->memory = memory;
	map->capacity = capacity;
	return NULL;
}

struct error *address_map_add(struct address_map *map, uint64_t address, uint32_t number)
{
	struct error *error = NULL;

	if (map->count * 2 >= map->capacity)
		error = grow(map);
	if (error)
		return error;
	*find_slot(map->memory.bytes, map->capacity, map->factor, address) =
		(struct slot){ address, (uint64_t)number + 1 };
	map->count++;
	return NULL;
}
