/*
 * What of malloc's memory is what: with headers, heads of heaps and what heaps may still grow by.
 */
#ifndef ALLOCATORS_GLIBC_EXTENTS_H
#define ALLOCATORS_GLIBC_EXTENTS_H

#include "allocators/glibc/glibc.h"

/*
 * The chunk of a block, as malloc counts it: from its own head to the next one's. That of a mapping
 * of its own is all of that.
 */
struct memory_range glibc_extent(const struct heap *heap, size_t number, struct block block,
				 const struct free_kind *kind);

/* Whether the used block is a thread's cache. */
bool glibc_keeps(const struct heap *heap, struct block block);

/*
 * Claim what malloc leaves out at the start of a main heap that is not aligned: it counts as the
 * arena's.
 */
struct error *glibc_claim_padding(const struct glibc_heap *heap, struct block_sink *sink);

/* The arena of the heap whose head or padding is at address, or NO_ARENA. */
size_t glibc_holds(const struct heap *heap, uint64_t address);

bool glibc_reserved(const struct heap *heap, size_t number, struct memory_range *ret);

#endif
