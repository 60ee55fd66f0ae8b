/*
 * The walk of the heap: chunks.c walks chunk by chunk, plain.c the many that need no closer look,
 * pieces.c with several threads, and mapped.c finds memory that no list leads to.
 */
#pragma once

#include "allocators/glibc/glibc.h"
#include "analyzer/base/budget.h"

/*
 * Chunks of that arena in a row, from start on, below end. In a main arena's memory, others may
 * have got memory by sbrk() between them.
 */
struct glibc_stretch {
	size_t arena;
	uint64_t start, end;
};

/* The walk of a stretch, which goes on behind damage. */
struct walk {
	struct glibc_heap *heap;
	struct block_sink *sink;
	struct glibc_arena *arena;
	arena_number number;
	uint64_t end;
	size_t cached, fast; /* the next members of these lists */
	struct view view;
	struct budget steps; /* of finding chunks */
	uint64_t previous;   /* block below, for a report; 0: none */
	uint64_t previous_size;
	/* The heap's, or apart until it is known whether they belong there. */
	struct glibc_links *links;
	struct number_list *suspects;
	bool in_pieces;	      /* others show progress */
	bool from_the_middle; /* of a stretch: nothing is reported */
};

/* Bits that no header of a chunk of the arena has. */
static inline uint64_t glibc_odd_bits(const struct glibc_arena *arena)
{
	return ((arena->layout->grain - 1) & ~(uint64_t)FLAGS) | IS_MMAPPED |
	       (arena->main ? NON_MAIN_ARENA : 0);
}

static inline bool glibc_is_valid(uint64_t header, uint64_t odd_bits, uint64_t available,
				  unsigned int word)
{
	uint64_t size = header_size(header);

	return !(header & odd_bits) && size >= glibc_minimum(word) && size <= available;
}

/* True if a header can be that of a chunk, with available bytes from it on. */
static inline bool is_valid_header(const struct glibc_arena *arena, uint64_t header,
				   uint64_t available, unsigned int word)
{
	return glibc_is_valid(header, glibc_odd_bits(arena), available, word);
}

/* True if the sorted list, from *cursor on, has chunk; moves the cursor. */
static inline bool glibc_list_has(const struct number_list *list, size_t *cursor, uint64_t chunk)
{
	while (*cursor < list->count && list->items[*cursor] < chunk)
		(*cursor)++;
	return *cursor < list->count && list->items[*cursor] == chunk;
}

/* A walk of the stretch that will begin with the chunk at start. */
struct walk glibc_walk_from(struct glibc_heap *heap, struct block_sink *sink,
			    const struct glibc_stretch *stretch, uint64_t start);

/*
 * Walk on from *chunk to the first chunk at or above stop, which is left in *chunk. The walk is
 * over at walk->end. From the middle of a stretch, it ends before a chunk of which anything must be
 * reported.
 */
struct error *glibc_walk_on(struct walk *walk, uint64_t *chunk, uint64_t stop);

/*
 * The first place from *chunk on, up to stop, behind so many valid chunks in a row that they are no
 * accident. False: there is none near.
 */
bool glibc_find_row(struct walk *walk, uint64_t *chunk, uint64_t stop);

/*
 * True if a sequence of valid chunks leads from start to the arena's top, or to the fence at the
 * end of a piece of heap, below end; *ret_end is its end.
 */
bool glibc_is_piece(struct glibc_heap *heap, const struct glibc_arena *arena, uint64_t start,
		    uint64_t end, uint64_t *ret_end);

/*
 * Add plain chunks from *chunk on that begin below stop, at most some thousand, and leave in *chunk
 * the first that was not added. Nearly all chunks of a heap are plain: valid, as the next one is,
 * on no list of those that look used, and not top. Their state is a bit in the header of the next,
 * and nothing but headers is read. chunks.c takes each of the others, and finds the same for a
 * plain one.
 */
struct error *glibc_walk_plain(struct walk *walk, uint64_t *chunk, uint64_t stop);

/*
 * Walk the stretches in order, and report their blocks. Where each walk ended, behind top or the
 * last fence, is left in its end. Before a stretch begins, begin(data, number) is called, if there
 * is such a function; others may be under way, but none of it is reported.
 */
struct error *glibc_walk_stretches(struct glibc_heap *heap, struct block_sink *sink,
				   struct glibc_stretch *stretches, size_t count,
				   struct error *(*begin)(void *data, size_t number), void *data);

/*
 * Walk the heaps of the arenas that are not main ones, and what is found in anonymous memory that
 * no arena leads to, in order of address: chunks with mappings of their own, and pieces of a main
 * arena that could not grow by sbrk(). done is the memory walked before, sorted.
 */
struct error *glibc_walk_mapped(struct glibc_heap *heap, struct block_sink *sink,
				const struct memory_range *done, size_t done_count);
