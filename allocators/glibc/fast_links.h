/*
 * Fast bins whose lists are long, in a dump that does not fit into memory.
 *
 * To follow such a list reads a page of the dump for each chunk, in any order. So that is put off:
 * the walk, which comes by all chunks in order, notes each that may be in a fast bin, and where its
 * link leads; the lists are followed among these, in memory.
 */
#ifndef ALLOCATORS_GLIBC_FAST_LINKS_H
#define ALLOCATORS_GLIBC_FAST_LINKS_H

#include "allocators/glibc/glibc.h"

/* Note the chunk, if it may be a member of a fast bin. */
struct error *glibc_note_fast(struct glibc_heap *heap, struct view *view, uint64_t chunk,
			      uint64_t size);

/*
 * With all blocks in the sink: follow the lists that were put off. Members are added to heap->fast,
 * and become free. A broken list ends there, and is kept to be reported.
 */
struct error *glibc_follow_fast(struct glibc_heap *heap, struct block_sink *sink);

#endif
