/*
 * The free memory of each arena: in what sizes it is, on which pages, and how much of it would go
 * back to the system.
 *
 * A page can go back to the system only if nothing on it is in use: what is used on a page with
 * free memory pins that. Allocators' headers between blocks count for neither.
 *
 *	page        |                    |
 *	blocks      ... used | free | used | used | free ...
 *	                pinner        pinner  pinner
 *
 * So each free byte is of one of three kinds: its page is in use otherwise (pinned); its page is
 * free, and is given back when the allocator is asked to (see struct spare); or its page is free
 * and kept all the same.
 */
#pragma once

#include "analyzer/heap/heaps.h"
#include "analyzer/image/arch.h"

enum {
	/* One may reach in from below. */
	MOST_PINNERS = PAGE / (1 << LEAST_SHIFT) + 1,
};

/* A page, or several in a row within one free block. */
struct heap_page {
	uint64_t start, end; /* whole pages */
	arena_number arena;
	uint64_t free;	 /* bytes of free blocks; not 0 */
	uint64_t cached; /* of these, in threads' caches */
	bool foreign;	 /* a part of it is outside of the arena's region */
	bool whole;	 /* nothing is in use on it, and it is not foreign */
	/* Used allocations on the page, by address; valid during the visit. */
	const allocation_id *pinners;
	size_t pinner_count;
};

/* Visit the pages with free memory by address, regions one after the other; visit may fail. */
struct error *heap_pages_visit(const struct allocation_index *index, struct progress *progress,
			       struct error *(*visit)(void *data, const struct heap_page *page),
			       void *data);

enum {
	SIZE_CLASSES = 48, /* class n: sizes from 2^n to below 2^(n+1) */
	MAP_CELLS = 64,	   /* in which an arena's memory is shown */
};

/* Bytes in whole pages, as far as the dump says what is in memory. */
struct page_bytes {
	uint64_t resident;
	uint64_t absent; /* given back or never touched, as the dump tells */
	uint64_t blank;	 /* zeros where it does not tell: absent, or cleared */
};

struct arena_fragments {
	struct set_total used, free;
	struct set_total cached;		/* of those free, in threads' caches */
	uint64_t largest;			/* size of the largest free block */
	struct set_total classes[SIZE_CLASSES]; /* of free blocks */
	uint64_t pinned;			/* free bytes on pages in use */
	uint64_t pinned_pages;			/* bytes of those pages */
	uint64_t kept;				/* free bytes on pages that are free, but kept */
	struct page_bytes inside, end;		/* given back; see enum spare_kind */
	struct page_bytes top;			/* kept at the ends of heaps */
	uint64_t size;				/* of its regions */
	uint64_t map[MAP_CELLS];		/* used bytes, of cell_size each */
	uint64_t cell_size;
};

struct fragments;

/*
 * Look at all arenas. Each page with free memory is also shown to visit, which may be NULL. heaps
 * and image are borrowed for the call.
 */
struct error *fragments_create(const struct heaps *heaps, const struct image *image,
			       struct progress *progress,
			       struct error *(*visit)(void *data, const struct heap_page *page),
			       void *data, struct fragments **ret);
void fragments_destroy(struct fragments *fragments);
DEFINE_CLEANUP(fragments_destroy, struct fragments *)

/* Numbered as those of the heaps. */
const struct arena_fragments *fragments_of(const struct fragments *fragments, arena_number arena);

/* Add the numbers of an arena to those of several; their map is not drawn. */
void fragments_add(struct arena_fragments *total, const struct arena_fragments *arena);

/* The bytes of the arena that trimming gives back and that are certainly resident. */
static inline uint64_t fragments_given_back(const struct arena_fragments *arena)
{
	return arena->inside.resident + arena->end.resident;
}
