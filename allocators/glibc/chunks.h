/*
 * Whether there are chunks; how they are walked is in walk.h and pieces.h.
 */
#ifndef ALLOCATORS_GLIBC_CHUNKS_H
#define ALLOCATORS_GLIBC_CHUNKS_H

#include "allocators/glibc/glibc.h"

/*
 * Whether sound chunks in a row lead from start to the arena's top or to the fence at the end of a
 * piece of heap, all below end; *ret_end is what is behind that.
 */
bool glibc_is_piece(struct glibc_heap *heap, const struct glibc_arena *arena, uint64_t start,
		    uint64_t end, uint64_t *ret_end);

#endif
