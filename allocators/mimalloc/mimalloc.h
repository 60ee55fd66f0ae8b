/*
 * The heap of mimalloc 1.7 to 3.6 in a dump.
 *
 * Layouts are those of include/mimalloc-types.h (later include/mimalloc/types.h), src/segment.c,
 * src/page-map.c and src/arena.c. A page has blocks of one size. It is found
 *
 *	1.x: in a segment at a multiple of 4 MiB, cut into pages of one size
 *	2.x: in a segment at a multiple of 32 MiB, cut into slices of 64 KiB, of which some in a row
 *	     are a page or a free span
 *		| head | slices: | info | page | (inside) | page | ... |  page's blocks ...
 *	3.x: by the page map, a tree of two levels, the leaves of which have a word for each 64 KiB
 *		module's data | map | -> | leaves | -> | page | ... -> page's blocks ...
 *
 * In 1.x and 2.x, a huge allocation has a segment for itself.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/base/list.h"
#include "analyzer/base/numbers.h"
#include "analyzer/heap/allocator.h"
#include "analyzer/heap/damage.h"
#include "analyzer/program/module_words.h"

enum {
	ALIGNMENT = 8,
	SLICE_BYTES = 64 << 10,
	PAGE_METADATA = 136,   /* the most of a page's metadata that is read */
	MOST_BLOCKS = 1 << 16, /* of a page: they are counted by 16 bits */
};

/* The free lists of a page: those freed by its own thread, also lately, and by others. */
enum { LIST_FREE, LIST_LOCAL, LIST_THREAD, LISTS };

enum mimalloc_form { FORM_PAGES /* 1.x */, FORM_SLICES /* 2.x */, FORM_MAP /* 3.x */ };

/* The source of the start of a page's blocks. */
enum mimalloc_start {
	START_128,	/* so many bytes behind the page's start if they have 8 to 1024 bytes */
	START_384,	/* the same */
	START_BLOCKS,	/* behind the room of three blocks of up to 64 bytes, of one up to 512 */
	START_MULTIPLE, /* of the size, in the page behind the segment's head */
	START_STATED,	/* the metadata have the address, */
	START_WORDS,	/* or how many words it is behind them, */
	START_BYTES,	/* or how many bytes */
};

/* Offsets in a segment's head and in a page's metadata: a row for each layout. */
struct mimalloc_layout {
	enum mimalloc_form form;
	enum mimalloc_start start_form;
	/*
	 * In the head: the first page's metadata, their distance, a word that is the same for all
	 * segments once xored with the address; in 1.x, also the size of the segment and of its
	 * pages.
	 */
	uint16_t pages, stride, cookie, extent, shift;
	/*
	 * In the metadata; keys, heap and memory are 0 if missing. Without a stated start, used and
	 * size have 32 bits, else 16 and 64.
	 */
	uint8_t capacity, free, local, thread, used, size, start, heap, keys, memory;
};

struct mimalloc_page {
	uint64_t start, end;   /* of the memory for its blocks */
	uint64_t metadata;     /* 0: it is a free span that has none */
	uint64_t bytes;	       /* of a block; 0: it is a free span */
	uint64_t first;	       /* where blocks begin */
	uint64_t lists[LISTS]; /* their first blocks */
	uint64_t keys[2];      /* links are encoded with them if there are any */
	uint64_t heap;	       /* 0: its thread has ended, or there is none */
	uint64_t memory[2];    /* 3.x: what it was allocated from */
	uint32_t capacity;     /* blocks carved so far, */
	uint32_t reserved;     /* that it may get, */
	uint32_t used;	       /* and that are used, as it says */
};

struct mimalloc_segment {
	uint64_t start, end;
	uint64_t head_end;
	uint64_t arena; /* 3.x: its structure, in the head */
};

/* A candidate for the page map, and the variable that points to it. */
struct mimalloc_map {
	uint64_t address, variable;
};

struct mimalloc_heap {
	struct heap heap;
	struct heap_context context;
	const struct mimalloc_layout *layout;
	uint64_t cookie;
	uint64_t bytes;
	uint64_t variable;	/* 3.x: what leads to the page map */
	uint64_t looks;		/* at what may be a page, to find the map */
	ARRAY(uint64_t) places; /* multiples of 4 MiB, where segments may be */
	ARRAY(struct mimalloc_map) maps;
	ARRAY(struct mimalloc_segment) segments; /* by address, apart; 3.x: arenas */
	ARRAY(struct mimalloc_page) pages;	 /* by address, apart */
	struct number_list delayed;		 /* blocks that others freed, by address */
	struct heap_damage absent, heads, counts, overruns;
	struct heap_list_damage lists;
	uint64_t checked_blocks; /* whose end is as it should be */
};

/* layouts.c */

size_t mimalloc_layout_count(void);
const struct mimalloc_layout *mimalloc_layout(size_t number);

/* Read the page whose metadata are at address; false: absent. Its start and end are not set. */
bool mimalloc_read_page(const struct mimalloc_layout *layout, struct view *view, uint64_t address,
			struct mimalloc_page *ret);

/* Set where blocks begin, and how large a huge one is, once start and end are set. */
void mimalloc_set_first(const struct mimalloc_layout *layout, bool is_behind_head,
			struct mimalloc_page *page);

/*
 * segments.c: list where segments may be; find segments and their pages by the heap's layout, of
 * 1.x or 2.x.
 */
struct error *mimalloc_find_places(struct mimalloc_heap *heap);
struct error *mimalloc_find_segments(struct mimalloc_heap *heap);

/*
 * map.c: list where page maps may be; find the pages by one and the heap's layout, of 3.x; find the
 * arenas that they are from, and what is free there.
 */
struct error *mimalloc_find_maps(struct mimalloc_heap *heap);
struct error *mimalloc_find_map(struct mimalloc_heap *heap);
struct error *mimalloc_find_arenas(struct mimalloc_heap *heap);

/* pages.c */

/* Sort pages, and leave out those that overlap others. */
void mimalloc_keep_apart(struct mimalloc_heap *heap);

/* How many of the first pages are consistent, and how many are except for a wrong link. */
struct mimalloc_votes {
	size_t pages, fits, damaged;
};

struct error *mimalloc_vote(const struct mimalloc_heap *heap, struct mimalloc_votes *ret);

/* Find the blocks that wait on the lists of heaps. */
struct error *mimalloc_read_heaps(struct mimalloc_heap *heap);

/* The page that has address, or NULL. */
const struct mimalloc_page *mimalloc_find_page(const struct mimalloc_heap *heap, uint64_t address);

/* Report pages and their blocks. */
struct error *mimalloc_add_blocks(struct mimalloc_heap *heap, arena_number arena,
				  struct block_sink *sink);
