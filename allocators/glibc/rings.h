/*
 * In which bin a free chunk is: on the ring of the bin's head, which stands in an arena.
 *
 * To find the head, the ring is followed from the chunk on, and a bin of a large heap holds
 * millions. So who asks leaves word on the way, at one chunk of 64 or so; the next one has to come
 * no further than that. That a ring leads to no head is left word of as well.
 */
#ifndef ALLOCATORS_GLIBC_RINGS_H
#define ALLOCATORS_GLIBC_RINGS_H

#include "allocators/glibc/glibc.h"

/* What was left, of a fixed size: the heap's member rings. It takes memory only as it is used. */
struct glibc_ring_memo;

/* NULL if memory is short: then the way is longer. */
struct glibc_ring_memo *glibc_ring_memo_create(void);
void glibc_ring_memo_free(struct glibc_ring_memo *memo);

/* The first address on the ring that is a head; 0 if it leads to none. */
uint64_t glibc_ring_head(const struct glibc_heap *heap, uint64_t chunk,
			 bool (*is_head)(const struct glibc_heap *heap, uint64_t address));

#endif
