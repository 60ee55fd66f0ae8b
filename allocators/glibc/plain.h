/*
 * Walking chunks of which nothing but headers has to be read.
 *
 * Nearly all chunks of a heap are such: sound, as the next one is, on no list
 * of those that look used, and not top. Their state is a bit in the header of
 * the next. Whatever else comes is left to chunks.c, which looks at each chunk
 * closely; both tell the same of a plain one.
 */
#ifndef ALLOCATORS_GLIBC_PLAIN_H
#define ALLOCATORS_GLIBC_PLAIN_H

#include "allocators/glibc/glibc.h"

/* The walk of a stretch of heap. */
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
};

/* Bits that no header of a chunk of the arena has. */
static inline uint64_t glibc_odd_bits(const struct glibc_arena *arena)
{
	return 8 | IS_MMAPPED | (arena->main ? NON_MAIN_ARENA : 0);
}

static inline bool glibc_is_sound(uint64_t header, uint64_t odd_bits,
				  uint64_t available)
{
	uint64_t size = header & ~(uint64_t)FLAGS;

	return !(header & odd_bits) && size >= MINIMUM_CHUNK &&
	       size <= available;
}

/* Whether a header can be that of a chunk with available bytes from it. */
static inline bool sound_header(const struct glibc_arena *arena,
				uint64_t header, uint64_t available)
{
	return glibc_is_sound(header, glibc_odd_bits(arena), available);
}

/* Whether the sorted list, from *cursor on, has chunk; moves the cursor. */
static inline bool glibc_list_has(const struct number_list *list,
				  size_t *cursor, uint64_t chunk)
{
	const uint64_t *all = numbers(list);

	while (*cursor < list->count && all[*cursor] < chunk)
		(*cursor)++;
	return *cursor < list->count && all[*cursor] == chunk;
}

/*
 * Add plain chunks from *chunk on, at most some thousand, and leave in *chunk
 * the first that was not added.
 */
struct error *glibc_walk_plain(struct walk *walk, uint64_t *chunk);

#endif
