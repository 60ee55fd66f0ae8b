/*
 * The heap of musl 1.2 (mallocng) in a dump.
 *
 * Layouts are those of src/malloc/mallocng (meta.h, malloc.c) of musl 1.2.1 to 1.2.6. Words are
 *those of the process: of 4 bytes on i386.
 *
 *	libc's data             meta area, 4 KiB           group
 *	| secret ... head | --> | secret | next | metas |  | meta | slot | slot | slot ... |
 *	                                          |            |
 *	                                          +----------->+
 *
 * A group has up to 32 slots of one size; its meta has a bit for each that is free. A slot may hold
 * a group of smaller slots.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/base/list.h"
#include "analyzer/heap/allocator.h"
#include "analyzer/heap/damage.h"
#include "analyzer/program/module_words.h"

enum {
	UNIT = 16, /* blocks begin at multiples of it */
	AREA_BYTES = 4096,
	SLOT_HEADER = 4, /* before a block; so the last 4 bytes of a slot belong to the next */
	MOST_DEPTH = 8,	 /* of groups in each other */
};

static const uint32_t NO_PARENT = UINT32_MAX;

struct musl_group {
	uint64_t start, end; /* of its memory; it begins with the address of its meta */
	uint64_t meta;
	uint64_t stride;
	uint32_t available, freed; /* a bit for each slot */
	uint32_t slots;
	uint32_t parent; /* the number of the group that has it in a slot, or NO_PARENT */
};

struct musl_heap {
	struct heap heap;
	struct heap_context context;
	uint64_t head; /* where the address of the first area is */
	uint64_t secret;
	uint64_t module_start, module_end;
	ARRAY(struct memory_range) areas; /* by address, apart */
	ARRAY(struct musl_group) groups;  /* by address; apart, or one in a slot of another */
	uint64_t bytes;			  /* of groups that are in no other */
	struct heap_damage absent, strangers, overlaps, headers;
};

/* Secret, of 64 bits; next; number of metas. */
static inline unsigned int area_head(const struct image *image)
{
	return 8 + 2 * image_word_size(image);
}

/* Four words, and two masks of 32 bits. */
static inline unsigned int meta_bytes(const struct image *image)
{
	return 8 + 4 * image_word_size(image);
}

static inline unsigned int most_metas(const struct image *image)
{
	return (AREA_BYTES - area_head(image)) / meta_bytes(image);
}

static inline uint64_t slot_start(const struct musl_group *group, unsigned int number)
{
	return group->start + UNIT + number * group->stride;
}

/* search.c: find the first area; false: there is none. */
struct error *musl_search(struct musl_heap *heap, bool *ret);

/* groups.c */

/* Read the areas, and the groups that they name. */
struct error *musl_read_groups(struct musl_heap *heap);

/* The innermost group that has address in a slot, and its number; NULL if there is none. */
const struct musl_group *musl_find_slot(const struct musl_heap *heap, uint64_t address,
					unsigned int *ret_slot);

/* Report groups and their slots. */
struct error *musl_add_blocks(struct musl_heap *heap, arena_number arena, struct block_sink *sink);
