#include "allocators/glibc/arena_rings.h"

enum fate { ENDS, RETURNS };

/* A way from a place: how it goes on. */
struct way {
	struct arena_rings *rings;
	struct address_map *places;
	uint64_t offset;
};

void arena_rings_init(struct arena_rings *rings, const struct image *image, size_t most,
		      struct memory_account *account)
{
	*rings = (struct arena_rings){ .view = { image }, .most = most };
	for (size_t i = 0; i < ARENA_RING_KINDS; i++)
		rings->places[i].memory.account = account;
}

void arena_rings_deinit(struct arena_rings *rings)
{
	for (size_t i = 0; i < ARENA_RING_KINDS; i++)
		table_release(&rings->places[i]);
}

static bool step(const struct way *way, uint64_t *place)
{
	return view_word(&way->rings->view, *place + way->offset, place) && *place % 8 == 0;
}

/* Keep the fate of a place, and of those behind it, count in all. */
static struct error *keep(const struct way *way, uint64_t place, size_t count, enum fate fate)
{
	struct error *error = NULL;

	for (size_t i = 0; i < count && !error; i++) {
		if (address_map_find(way->places, place) == NOT_IN_MAP)
			error = address_map_add(way->places, place, fate);
		if (!step(way, &place))
			break;
	}
	return error;
}

static struct error *keep_ring(const struct way *way, uint64_t start)
{
	uint64_t place = start;
	size_t count = 1;

	while (step(way, &place) && place != start)
		count++;
	return keep(way, start, count, RETURNS);
}

/*
 * Go on from address until it is clear where that leads, and keep that. What comes round meets a
 * mark on the way (Brent).
 */
static struct error *follow(const struct way *way, uint64_t address)
{
	uint64_t place = address, mark = address;
	size_t count = 0, power = 1;
	struct error *error = NULL;

	/* It takes no more than thrice as long as the way and the ring are. */
	while (count++ < 4 * way->rings->most) {
		if (!step(way, &place) || address_map_find(way->places, place) != NOT_IN_MAP)
			return keep(way, address, count, ENDS);
		if (place == mark) {
			error = keep_ring(way, mark);
			return error ? error : keep(way, address, count, ENDS);
		}
		if (count == power) {
			mark = place;
			power *= 2;
		}
	}
	return NULL;
}

/* Ways through what is no arena could be longer than is worth keeping. */
static void forget_many(struct address_map *places, size_t most)
{
	if (places->count > most)
		table_release(places);
}

struct error *arena_rings_find(struct arena_rings *rings, size_t kind, uint64_t offset,
			       uint64_t address, bool *ret)
{
	const struct way way = { rings, &rings->places[kind], offset };
	struct error *error = NULL;

	if (address_map_find(way.places, address) == NOT_IN_MAP) {
		forget_many(way.places, rings->most);
		error = follow(&way, address);
	}
	*ret = address_map_find(way.places, address) == RETURNS;
	return error;
}
