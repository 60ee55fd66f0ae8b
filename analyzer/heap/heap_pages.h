/*
 * The pages of the heaps that have free memory, and what is in use on them.
 *
 *	page        |                    |
 *	blocks      ... used | free | used | used | free ...
 *	                pinner        pinner  pinner
 *
 * A page can go back to the system only if nothing on it is in use: what is used on a page with
 * free memory pins that. Allocators' headers between blocks count for neither.
 */
#ifndef ANALYZER_HEAP_HEAP_PAGES_H
#define ANALYZER_HEAP_HEAP_PAGES_H

#include "analyzer/base/progress.h"
#include "analyzer/heap/index.h"
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
	/* What is in use on it, by address; valid while it is visited. */
	const allocation_id *pinners;
	size_t pinner_count;
};

/* Visit each by address, regions one after the other; visit may fail. */
struct error *heap_pages_visit(const struct allocation_index *index, struct progress *progress,
			       struct error *(*visit)(void *data, const struct heap_page *page),
			       void *data);

#endif
