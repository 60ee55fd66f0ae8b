/*
 * The heap of mimalloc 2.0 in a dump.
 *
 * Layouts are those of include/mimalloc-types.h and src/segment.c of mimalloc 2.0.9.
 *
 *	segment, at a multiple of 32 MiB
 *	| head | slices: | info | page | (inside) | page | ... |  page's blocks ...
 *
 * A segment is cut into slices of 64 KiB, of which some in a row are a page: blocks of one size, or
 * a free span. A huge allocation has a segment for itself.
 */
#ifndef ALLOCATORS_MIMALLOC_MIMALLOC_H
#define ALLOCATORS_MIMALLOC_MIMALLOC_H

#include "analyzer/base/array.h"
#include "analyzer/base/list.h"
#include "analyzer/heap/allocator.h"
#include "analyzer/heap/damage.h"
#include "analyzer/program/module_words.h"

enum {
	ALIGNMENT = 8,
	SEGMENT_BYTES = 32 << 20,
	SLICE_BYTES = 64 << 10,
	SEGMENT_SLICES = SEGMENT_BYTES / SLICE_BYTES,
	SEGMENT_COOKIE = 216,
	SLICES = 264, /* where they are in the segment */
	SLICE_STRIDE = 80,
	MOST_BLOCKS = 1 << 16, /* of a page: they are counted by 16 bits */
};

/* The free lists of a page: those freed by its own thread, also lately, and by others. */
enum { LIST_FREE, LIST_LOCAL, LIST_THREAD, LISTS };

struct mimalloc_page {
	uint64_t start, end; /* its slices */
	uint64_t metadata;   /* its first slice in the segment's head */
	uint64_t bytes;	     /* of a block; 0: it is a free span */
	uint64_t first;	     /* where blocks begin */
	uint64_t lists[LISTS];
	uint64_t heap; /* 0: its thread has ended */
	uint32_t capacity, used;
};

struct mimalloc_segment {
	uint64_t start, end;
	uint64_t head_end;
};

struct mimalloc_heap {
	struct heap heap;
	struct heap_context context;
	uint64_t cookie;
	uint64_t bytes;
	ARRAY(struct mimalloc_segment) segments; /* by address, apart */
	ARRAY(struct mimalloc_page) pages;	 /* by address, apart */
	ARRAY(uint64_t) delayed;		 /* blocks that others freed, by address */
	ARRAY(struct memory_range) owned;
	struct heap_damage absent, lists, counts;
};

/* search.c: find segments and their pages. */
struct error *mimalloc_search(struct mimalloc_heap *heap);

/* pages.c */

/* Find where blocks begin in pages, and those freed by others. */
struct error *mimalloc_read_pages(struct mimalloc_heap *heap);

/* Whether most pages are as they should be. */
bool mimalloc_fits(const struct mimalloc_heap *heap);

/* The page that has address, or NULL. */
const struct mimalloc_page *mimalloc_find_page(const struct mimalloc_heap *heap, uint64_t address);

/* Whether the free block is one that another thread freed. */
bool mimalloc_is_delayed(const struct mimalloc_heap *heap, uint64_t address);

/* Report pages and their blocks. */
struct error *mimalloc_add_blocks(struct mimalloc_heap *heap, arena_number arena,
				  struct block_sink *sink);

#endif
