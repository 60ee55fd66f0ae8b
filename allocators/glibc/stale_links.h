/*
 * Links that malloc left in a chunk when it was free, which its user has not overwritten. Taken for
 * references, they hide leaks: a chunk that was split off a large free one keeps its own chunk
 * address, which is in the last 8 bytes of the allocation below.
 */
#ifndef ALLOCATORS_GLIBC_STALE_LINKS_H
#define ALLOCATORS_GLIBC_STALE_LINKS_H

#include "allocators/glibc/glibc.h"

unsigned int glibc_stale_links(const struct glibc_heap *heap, const struct allocation_index *index,
			       uint64_t start, const uint64_t words[4]);

#endif
