/*
 * PartitionAlloc, the malloc of Chromium and of what is made of it, on machines with words of 8
 * bytes and pages of 4 KiB. Sources: base/allocator/partition_allocator/ of Chromium.
 *
 *	super page	2 MiB at a multiple of that: | guard, 16 KiB | slot spans ... | guard |
 *	metadata page	| extent | page 1 | page 2 | ... of 32 bytes, one for each 16 KiB
 *	extent		| root | next extent | ...
 *	page		of a span: | first free slot | next span | bucket | counts | ... place |
 *	bucket		| three lists of spans | slot size | system pages of a span, 8 bits | ...
 *
 * A super page's metadata page is its second one. Since 2025 it is elsewhere, at a distance that
 * the root has and that is the same for all of a pool. Buckets are in the root, by size; a large
 * allocation is a super page with a bucket of its own in the metadata page. Roots are variables of
 * the program.
 *
 * A free slot begins with a link to the next one, its bytes in reverse order, and with the
 * complement of that; in later versions the link is an offset in the pool. To allocate a slot sets
 * both to 0. Slots of the malloc have a count of pointers in their last 4 bytes, where the lowest
 * bit is unset once the program freed the slot; of those that begin a page, the count is in the
 * page behind where the metadata page was.
 */
#pragma once

#include "analyzer/base/error.h"
#include "analyzer/heap/allocator.h"
#include "analyzer/heap/damage.h"
#include "analyzer/image/view.h"

enum {
	PA_WORD = 8,
	PA_SYSTEM_PAGE = 4096,
	PA_PAGE_SHIFT = 14,
	PA_SUPER_PAGE = 2 << 20,
	PA_MOST_SLOTS = 1 << 15,
	PA_COUNT_BYTES = 4, /* of pointers to a slot */
};

struct pa_root {
	uint64_t address;
	uint64_t distance; /* from a super page to its metadata page */
	uint64_t extras;   /* bytes at the end of each slot that are not the program's */
	uint64_t bytes;	   /* of its spans */
};

struct pa_span {
	uint64_t start;
	uint64_t metadata;
	uint64_t bytes; /* of system pages */
	uint64_t slot_size;
	uint64_t raw_size;  /* of the only slot, with extras; 0: the slot's size */
	uint64_t head;	    /* the first free slot, or 0 */
	uint32_t slots;	    /* that were made; the rest was never handed out */
	uint32_t allocated; /* by the program or caches of threads */
	uint32_t root;	    /* an index */
};

/* A free slot that a thread keeps. */
struct pa_cached {
	uint64_t address;
	uint32_t thread;
};

struct pa_heap {
	struct heap heap;
	struct heap_context context;
	ARRAY(struct pa_root) roots;
	ARRAY(struct pa_span) spans;	/* by address, apart */
	ARRAY(struct pa_cached) cached; /* by address */
	ARRAY(uint64_t) caches;		/* the caches of threads, by address */
	ARRAY(uint64_t) metadata;	/* pages */
	struct heap_damage overlaps, misfits, absent, counts, lengths;
	struct heap_list_damage lists;
};

static inline uint64_t pa_span_end(const struct pa_span *span)
{
	return span->start + span->bytes;
}

/* Find metadata pages, roots and spans. */
struct error *pa_search(struct pa_heap *heap);

/* Find the caches of threads and what they have. */
struct error *pa_find_caches(struct pa_heap *heap);

struct error *pa_add_blocks(struct pa_heap *heap, arena_number first, struct block_sink *sink);

/* The span with that address, or NULL. */
const struct pa_span *pa_find_span(const struct pa_heap *heap, uint64_t address);
const struct pa_cached *pa_find_cached(const struct pa_heap *heap, uint64_t address);

/*
 * Read what a free slot leads to: its link as an address or as an offset, or 0 at the end of a
 * list. False: it is no free slot. *ret_absent: the core lacks it.
 */
bool pa_read_link(struct view *view, uint64_t slot, uint64_t *ret, bool *ret_absent);

/* True if the program freed the slot, and pointers that are counted still lead there. */
bool pa_is_quarantined(const struct pa_heap *heap, struct view *view, const struct pa_span *span,
		       uint64_t slot);

extern const struct allocator allocator_partition_alloc;
