/*
 * Rings: where lists lead back to, without following any of them twice.
 */
#ifndef ALLOCATORS_GLIBC_RINGS_H
#define ALLOCATORS_GLIBC_RINGS_H

#include "allocators/glibc/glibc.h"

/*
 * The ring of arenas. Each place in memory has one next, so paths join and never part: they lead
 * into a ring, or end. Places on a path are kept with their fate, so that no path is followed
 * twice, however many places it is entered at.
 */
enum { ARENA_RING_KINDS = 4 };

struct arena_rings {
	struct view view;
	size_t most; /* places in a ring */
	struct address_map places[ARENA_RING_KINDS];
};

/* All is borrowed, and must outlive the rings. */
void arena_rings_init(struct arena_rings *rings, const struct image *image, size_t most,
		      struct memory_account *account);
void arena_rings_deinit(struct arena_rings *rings);
DEFINE_DEINIT(arena_rings_deinit, struct arena_rings)

/*
 * Whether address is on a ring, where each place has the next at that offset, which is the same for
 * all of a kind.
 */
struct error *arena_rings_find(struct arena_rings *rings, size_t kind, uint64_t offset,
			       uint64_t address, bool *ret);

/*
 * The ring of a bin, with its head in an arena, and up to millions of chunks. A search for the head
 * leaves a memo on its way, at one chunk of 64 or so; the next search ends there. A ring without a
 * head leaves memos as well. They are of a fixed size, and take memory only as they are used.
 */
struct glibc_ring_memo;

/* NULL if memory is short: then searches take longer. */
struct glibc_ring_memo *glibc_ring_memo_create(void);
void glibc_ring_memo_free(struct glibc_ring_memo *memo);

/* The first address on the ring that is a head; 0 if it leads to none. */
uint64_t glibc_ring_head(const struct glibc_heap *heap, uint64_t chunk,
			 bool (*is_head)(const struct glibc_heap *heap, uint64_t address));

#endif
