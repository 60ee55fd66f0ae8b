/*
 * The heap of the Zend engine, Zend/zend_alloc.c of PHP, 7.3 to 8.4.
 *
 * It gets chunks of 2 MiB from the system, at multiples of that, and cuts them into pages of 4 KiB.
 * The first page is the chunk's head; the others are free, a large block of whole pages, or a run:
 *
 *	chunk    | head | run of 3 pages | large block | free pages ........ |
 *	run      | block | free block | block | rest, less than a block |
 *	head     heap, next and previous chunk, u32 free pages, ..., map of free pages, map of pages
 *
 * A word of the map of pages is 0x40000000 | pages for the first of a large block, 0x80000000 | bin
 * for the first of a run, and 0xc0000000 | offset << 16 | bin for its others; whether a page is
 *free, only the bits of the other map say. There are 30 bins, each of blocks of one size; their
 *free blocks are on lists, by the first word. A larger block is huge: it has a mapping of its own,
 *at a multiple of 2 MiB, and a list in the heap.
 *
 * The struct zend_mm_heap is in the head of its main chunk, 64 bytes from its start, and leads back
 * to it. Chunks are in a ring; unused ones that were kept are on a list. 8.4 has one word more, the
 * key of copies of the links of free blocks, before the lists.
 */
#pragma once

#include "analyzer/base/bitmap.h"
#include "analyzer/base/numbers.h"
#include "analyzer/heap/allocator.h"
#include "analyzer/heap/damage.h"
#include "analyzer/image/view.h"

enum {
	ZEND_CHUNK = 2 << 20,
	ZEND_PAGE = 4096,
	ZEND_PAGES = ZEND_CHUNK / ZEND_PAGE,
	ZEND_BINS = 30,
	ZEND_HEAP = 64, /* its place in the main chunk */
	ZEND_UNIT = 8,	/* sizes are multiples of it */
	ZEND_UNITS = ZEND_CHUNK / ZEND_UNIT,
};

struct zend_bin {
	uint32_t size, pages;
};

extern const struct zend_bin zend_bins[ZEND_BINS];

/* A struct zend_mm_heap; what it says is checked where it is used. */
struct zend_space {
	uint64_t main; /* the chunk that it is in */
	uint64_t map;  /* where chunks have their map of pages, behind the bits */
	uint64_t size, real_size;
	uint64_t free[ZEND_BINS];
	uint64_t huge, cached; /* the first of the lists */
	uint64_t held;	       /* bytes of chunks and huge blocks */
	uint64_t used;	       /* bytes of blocks, after the walk */
	bool broken[ZEND_BINS];
};

enum zend_chunk_kind {
	ZEND_CHUNK_UNKNOWN, /* of no list */
	ZEND_CHUNK_RING,
	ZEND_CHUNK_CACHED,
	ZEND_CHUNK_HUGE, /* a huge block */
};

struct zend_chunk {
	uint64_t start, size;
	uint32_t space; /* its heap's number */
	enum zend_chunk_kind kind;
};

struct zend_heap {
	struct heap heap;
	struct heap_context context;
	ARRAY(struct zend_space) spaces; /* by address */
	ARRAY(struct zend_chunk) chunks; /* by address, apart; also huge blocks */
	ARRAY(struct zend_chunk) others; /* huge and cleared ones, for the search alone */
	struct number_list nodes;	 /* blocks that say where a huge one is, by address */
	struct heap_damage rings, huge_damage, lists, pages, heads, counts;
};

/* Find heaps, their chunks and huge blocks. */
struct error *zend_search(struct zend_heap *heap);

/* Add all blocks. */
struct error *zend_add_blocks(struct zend_heap *heap, arena_number first, struct block_sink *sink);

/* The chunk or huge block that has the address, or NULL. */
const struct zend_chunk *zend_find_chunk(const struct zend_heap *heap, uint64_t address);

/* A chunk's page. */
struct zend_page {
	enum { ZEND_FREE, ZEND_LARGE, ZEND_RUN, ZEND_NONSENSE } kind;
	uint32_t first; /* of its run */
	uint32_t count; /* pages of the large block or run */
	uint32_t bin;
};

struct zend_head {
	uint64_t bits[ZEND_PAGES / 64]; /* of pages that are not free */
	uint32_t map[ZEND_PAGES];
};

bool zend_read_head(struct view *view, const struct zend_space *space, uint64_t chunk,
		    struct zend_head *ret);
struct zend_page zend_read_page(const struct zend_head *head, uint32_t number);
