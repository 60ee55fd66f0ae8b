#include "allocators/glibc/rings.h"

#include "analyzer/base/table.h"

enum fate { ENDS, RETURNS };

/* How to go on from a place. */
struct path {
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

static bool step(const struct path *path, uint64_t *place)
{
	return view_word(&path->rings->view, *place + path->offset, place) && *place % 8 == 0;
}

/* Keep the fate of count places from the first on. */
static struct error *keep(const struct path *path, uint64_t place, size_t count, enum fate fate)
{
	for (size_t i = 0; i < count; i++) {
		if (address_map_find(path->places, place) == NOT_IN_MAP)
			TRY(address_map_add(path->places, place, fate));
		if (!step(path, &place))
			break;
	}
	return NULL;
}

static struct error *keep_ring(const struct path *path, uint64_t start)
{
	uint64_t place = start;
	size_t count = 1;

	while (step(path, &place) && place != start)
		count++;
	return keep(path, start, count, RETURNS);
}

/* Follow the path from address until its fate is known, and keep that. */
static struct error *follow(const struct path *path, uint64_t address)
{
	struct cycle_search search = { .mark = address, .power = 1 };
	uint64_t place = address;

	/* It takes at most three times the length of the path and the ring. */
	while (search.steps < 4 * path->rings->most) {
		if (!step(path, &place) || address_map_find(path->places, place) != NOT_IN_MAP)
			return keep(path, address, search.steps + 1, ENDS);
		if (cycle_closes(&search, place)) {
			TRY(keep_ring(path, place));
			return keep(path, address, search.steps + 1, ENDS);
		}
	}
	return NULL;
}

/* Paths through memory without arenas may be too long to be kept. */
static void forget_many(struct address_map *places, size_t most)
{
	if (places->count > most)
		table_release(places);
}

struct error *arena_rings_find(struct arena_rings *rings, size_t kind, uint64_t offset,
			       uint64_t address, bool *ret)
{
	const struct path path = { rings, &rings->places[kind], offset };

	if (address_map_find(path.places, address) == NOT_IN_MAP) {
		forget_many(path.places, rings->most);
		TRY(follow(&path, address));
	}
	*ret = address_map_find(path.places, address) == RETURNS;
	return NULL;
}

enum { SAMPLE = 64, SLOTS = 1 << 14, PROGRESS_STEP = 1 << 14 };

/* The head of the ring that a chunk leads to; 0: none. */
struct memo {
	uint64_t chunk, head;
};

struct glibc_ring_memo {
	uint64_t factor; /* secret, so that no dump avoids the sampled chunks */
	struct memo memos[SLOTS];
};

struct glibc_ring_memo *glibc_ring_memo_create(void)
{
	struct glibc_ring_memo *memo = calloc(1, sizeof(*memo));

	if (memo)
		memo->factor = secret_factor();
	return memo;
}

void glibc_ring_memo_free(struct glibc_ring_memo *memo)
{
	free(memo);
}

/* The place of the chunk's memo; NULL: this one has none. */
static struct memo *find_memo(struct glibc_ring_memo *memo, uint64_t chunk)
{
	size_t slot;

	if (!memo)
		return NULL;
	slot = secret_hash(chunk, memo->factor) % (SAMPLE * SLOTS);
	return slot % SAMPLE == 0 ? &memo->memos[slot / SAMPLE] : NULL;
}

static bool recall(struct glibc_ring_memo *memo, uint64_t chunk, uint64_t *ret_head)
{
	const struct memo *found = find_memo(memo, chunk);

	/* Empty memos are of a chunk at 0, where there is none. */
	if (!found || !chunk || found->chunk != chunk)
		return false;
	*ret_head = found->head;
	return true;
}

/* Leave memos at that many chunks from the first on. */
static void leave_memos(const struct glibc_heap *heap, uint64_t chunk, uint64_t steps,
			uint64_t head)
{
	struct view view = { heap->context.image };

	for (uint64_t i = 0; i < steps; i++) {
		struct memo *memo = find_memo(heap->rings, chunk);

		if (memo)
			*memo = (struct memo){ chunk, head };
		if (!view_word(&view, chunk + HEADER, &chunk))
			return;
	}
}

uint64_t glibc_ring_head(const struct glibc_heap *heap, uint64_t chunk,
			 bool (*is_head)(const struct glibc_heap *heap, uint64_t address))
{
	struct view view = { heap->context.image };
	struct cycle_search search = { .mark = chunk, .power = 1 };
	uint64_t at = chunk, head = 0;

	while (!recall(heap->rings, at, &head) && view_word(&view, at + HEADER, &at)) {
		if (is_head(heap, at)) {
			head = at;
			break;
		}
		if (cycle_closes(&search, at))
			break;
		if (search.steps % PROGRESS_STEP == 0 && !progress_step(heap->context.progress, 0))
			return 0;
	}
	leave_memos(heap, chunk, search.steps, head);
	return head;
}
