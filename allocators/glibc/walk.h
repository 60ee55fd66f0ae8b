/*
 * The walk of a stretch of heap: what chunks.c, plain.c and pieces.c share.
 */
#ifndef ALLOCATORS_GLIBC_WALK_H
#define ALLOCATORS_GLIBC_WALK_H

#include "allocators/glibc/glibc.h"

/*
 * Chunks in a row, from start on, that lie below end and belong to that arena. In a main arena's
 * memory, what others got by sbrk() may stand between them.
 */
struct glibc_stretch {
	size_t arena;
	uint64_t start, end;
};

/* The walk of one, behind damage as well. */
struct walk {
	struct glibc_heap *heap;
	struct block_sink *sink;
	struct glibc_arena *arena;
	arena_number number;
	uint64_t end;	     /* of what may be walked */
	size_t cached, fast; /* the next of these lists at or above */
	struct view view;
	uint64_t steps;	   /* that may still be spent on finding chunks */
	uint64_t previous; /* block below, for a report; 0: none */
	uint64_t previous_size;
	/* Where these go: into the heap's, or apart until it is known whether they belong there. */
	struct glibc_links *links;
	struct number_list *suspects;
	bool in_pieces;	      /* see pieces.h: others tell of progress */
	bool from_the_middle; /* of a stretch: nothing is reported of it */
};

/* Bits that no header of a chunk of the arena has. */
static inline uint64_t glibc_odd_bits(const struct glibc_arena *arena)
{
	return 8 | IS_MMAPPED | (arena->main ? NON_MAIN_ARENA : 0);
}

static inline bool glibc_is_sound(uint64_t header, uint64_t odd_bits, uint64_t available)
{
	uint64_t size = header & ~(uint64_t)FLAGS;

	return !(header & odd_bits) && size >= MINIMUM_CHUNK && size <= available;
}

/* Whether a header can be that of a chunk with available bytes from it. */
static inline bool sound_header(const struct glibc_arena *arena, uint64_t header,
				uint64_t available)
{
	return glibc_is_sound(header, glibc_odd_bits(arena), available);
}

/* Whether the sorted list, from *cursor on, has chunk; moves the cursor. */
static inline bool glibc_list_has(const struct number_list *list, size_t *cursor, uint64_t chunk)
{
	const uint64_t *all = numbers(list);

	while (*cursor < list->count && all[*cursor] < chunk)
		(*cursor)++;
	return *cursor < list->count && all[*cursor] == chunk;
}

/* A walk of the stretch that will begin with the chunk at start. */
struct walk glibc_walk_from(struct glibc_heap *heap, struct block_sink *sink,
			    const struct glibc_stretch *stretch, uint64_t start);

/*
 * Walk on from *chunk to the first chunk at or above stop, which is left in *chunk; what is at or
 * above walk->end is the end of the walk. From the middle it ends, with the chunk, where more than
 * chunks is reported or found.
 */
struct error *glibc_walk_on(struct walk *walk, uint64_t *chunk, uint64_t stop);

/*
 * The first place from *chunk on, up to stop, behind so many sound chunks in a row that they are no
 * accident. False: there is none near.
 */
bool glibc_find_row(struct walk *walk, uint64_t *chunk, uint64_t stop);

#endif
