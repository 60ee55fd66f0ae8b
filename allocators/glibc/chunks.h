/*
 * Walking the chunks of a stretch of heap, behind damage as well.
 */
#ifndef ALLOCATORS_GLIBC_CHUNKS_H
#define ALLOCATORS_GLIBC_CHUNKS_H

#include "allocators/glibc/glibc.h"

/*
 * Report the blocks of the chunks from start on, which lie below end and
 * belong to that arena. In a main arena's memory, what others got by sbrk()
 * may stand between them. Where it stopped, behind top or the last fence, is
 * left in *ret_end.
 */
struct error *glibc_walk_chunks(struct glibc_heap *heap,
				struct block_sink *sink, size_t arena,
				uint64_t start, uint64_t end,
				uint64_t *ret_end);

/*
 * Whether sound chunks in a row lead from start to the arena's top or to the
 * fence at the end of a piece of heap, all below end; *ret_end is what is
 * behind that.
 */
bool glibc_is_piece(struct glibc_heap *heap, const struct glibc_arena *arena,
		    uint64_t start, uint64_t end, uint64_t *ret_end);

#endif
