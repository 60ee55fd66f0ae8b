/*
 * GLib's slices in a dump: glib/gslice.c of GLib 2.10 to 2.74; later ones pass on to malloc.
 *
 * A slab is a block of malloc's, aligned to its own size, and cut into chunks of one size, of which
 * there is a bin for each multiple of two words. Where they do not fill it, the first begins at the
 * slab's color. At its end is what it says of itself.
 *
 *	page     page + color                                    page + page_bytes
 *	| unused | chunk | chunk | ...                  | unused | info |
 *
 * Free chunks are on the list of their slab, or in magazines, which count as used there: each
 * thread has two for each bin, and others are in the depot. A magazine is a list whose members may
 * have a list each. In the depot, magazines form a ring, by the second words of the first four
 * members. Slabs of a bin form a ring.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/base/list.h"
#include "analyzer/base/numbers.h"
#include "analyzer/heap/allocator.h"
#include "analyzer/heap/damage.h"
#include "analyzer/image/view.h"

/* The variable "allocator" of a libglib; there may be several. */
struct gslice_source {
	uint64_t address;
	uint64_t magazines, slabs; /* arrays with a word for each bin */
	uint32_t bins;
	uint32_t bytes; /* of the variable, as far as it is read */
	bool locked;	/* a thread was changing the slabs */
};

struct gslice_slab {
	uint64_t page;
	uint32_t bin, source;
	uint32_t color;
	bool has_color;		 /* it is known by a free chunk */
	uint32_t free, magazine; /* chunks on its list or in magazines; bits */
	uint32_t cached;	 /* of the latter, in a thread's */
	uint32_t used;		 /* chunks that are not on its list, as it says */
};

struct gslice_heap {
	struct heap heap;
	struct heap_context context;
	unsigned int word;
	struct view view;
	ARRAY(struct gslice_source) sources;
	ARRAY(struct gslice_slab) slabs; /* by address */
	struct number_list threads;	 /* their magazines */
	struct heap_list_damage lists;
	struct heap_damage rings, counts;
	uint64_t blamed; /* the last chunk with a wrong link */
};

/* The unit of chunk sizes. */
static inline uint64_t gslice_unit(const struct gslice_heap *heap)
{
	return 2 * (uint64_t)heap->word;
}

/* Bytes at the end of a slab: four words, and room for malloc's header. */
static inline uint64_t gslice_info(const struct gslice_heap *heap)
{
	return 6 * (uint64_t)heap->word;
}

static inline uint64_t gslice_chunk_bytes(const struct gslice_heap *heap, uint32_t bin)
{
	return (bin + 1) * gslice_unit(heap);
}

/* The least power of two for eight chunks. */
static inline uint64_t gslice_page_bytes(const struct gslice_heap *heap, uint32_t bin)
{
	uint64_t least = 8 * gslice_chunk_bytes(heap, bin) + gslice_info(heap);

	return UINT64_C(1) << (64 - __builtin_clzll(least - 1));
}

/* The bytes for chunks. */
static inline uint64_t gslice_room(const struct gslice_heap *heap, uint32_t bin)
{
	return gslice_page_bytes(heap, bin) - gslice_info(heap);
}

static inline uint32_t gslice_chunk_count(const struct gslice_heap *heap, uint32_t bin)
{
	return (uint32_t)(gslice_room(heap, bin) / gslice_chunk_bytes(heap, bin));
}

/* Colors are below that; 0: there is only one. */
static inline uint64_t gslice_padding(const struct gslice_heap *heap, uint32_t bin)
{
	return gslice_room(heap, bin) % gslice_chunk_bytes(heap, bin);
}

/* The slab that has address, or NULL. */
struct gslice_slab *gslice_find_slab(const struct gslice_heap *heap, uint64_t address);

/*
 * colors.c: find the color of slabs without free chunks, by what refers to their chunks.
 */
struct error *gslice_find_colors(struct gslice_heap *heap);
