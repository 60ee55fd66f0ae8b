/*
 * Whether the links of arenas lead back to where they began.
 *
 * Each place in memory has one next, so ways run together and never apart: a ring, and ways that
 * lead into it or end. What is known of the places on a way is kept, so that no way is gone twice,
 * however many begin on it.
 */
#ifndef ALLOCATORS_GLIBC_ARENA_RINGS_H
#define ALLOCATORS_GLIBC_ARENA_RINGS_H

#include "analyzer/base/address_map.h"
#include "analyzer/image/view.h"

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

#endif
