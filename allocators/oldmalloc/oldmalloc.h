/*
 * The heap of musl's older malloc in a dump.
 *
 * Layouts are those of src/malloc/malloc.c of musl 1.0 to 1.2.0, which is src/malloc/oldmalloc from
 * 1.2.1 on.
 *
 *	variables of libc                        piece of the heap
 *	| mask | bin | bin ... 64 of them |      | 1, size | ... | size, size | ... | size, 1 |
 *	         |                                                 ^
 *	         +-------------------------------------------------+
 *
 * A chunk begins with the size of the chunk before it and its own, both with a bit that is set if
 * the chunk is in use: so each size is stored twice. The first chunk of a piece has none before it,
 * and the last one no size: 1, the bit alone. A free chunk is in the list of one of 64 bins.
 */
#ifndef ALLOCATORS_OLDMALLOC_OLDMALLOC_H
#define ALLOCATORS_OLDMALLOC_OLDMALLOC_H

#include "analyzer/base/list.h"
#include "analyzer/heap/allocator.h"
#include "analyzer/heap/damage.h"
#include "analyzer/program/module_words.h"

enum {
	BINS = 64,
	BIN_BYTES = 24,	   /* lock, first, last */
	BINS_AT = 8,	   /* behind the mask of bins with chunks */
	BIN_FIRST = 8,	   /* in a bin */
	CHUNK_UNIT = 32,   /* sizes are multiples of it */
	CHUNK_HEADER = 16, /* chunks begin so many bytes before a multiple of it */
	CHUNK_NEXT = 16,   /* of a free chunk: in its bin */
	CHUNK_PREVIOUS = 24,
	CHUNK_USED = 1, /* of both sizes */
};

enum oldmalloc_arena { OLDMALLOC_HEAP, OLDMALLOC_MAPPED, OLDMALLOC_ARENAS };

struct oldmalloc_heap {
	struct heap heap;
	struct heap_context context;
	uint64_t mask; /* where the mask of bins is; they follow */
	uint64_t module_start, module_end;
	uint64_t bytes[OLDMALLOC_ARENAS];
	uint64_t start, end; /* of all pieces */
	struct heap_damage sizes, links;
	uint64_t wrong_size, stated_size; /* of the first: its own, and what the next chunk says */
};

/* Lists take a bin for a chunk whose links are its first and last. */
static inline uint64_t bin_chunk(const struct oldmalloc_heap *heap, unsigned int bin)
{
	return heap->mask + BINS_AT + BIN_FIRST + (uint64_t)BIN_BYTES * bin - CHUNK_NEXT;
}

static inline uint64_t bins_end(uint64_t mask)
{
	return mask + BINS_AT + BINS * BIN_BYTES;
}

/* The bin of free chunks of that size: 32 of a unit each, then four for each doubling. */
unsigned int oldmalloc_bin(uint64_t size);

/* search.c: find the bins; false: there are none. */
struct error *oldmalloc_search(struct oldmalloc_heap *heap, bool *ret);

/* chunks.c: find pieces of the heap and mapped chunks, and report them. */
struct error *oldmalloc_add_blocks(struct oldmalloc_heap *heap, arena_number first,
				   struct block_sink *sink);

#endif
