/*
 * The heap of Google's tcmalloc (github.com/google/tcmalloc) in a dump, as of 2023 to 2026.
 *
 *	module's data     (node)      leaf                               Span
 *	page map root --> | ... | --> | class of each page | Span of ... | --> | first page | ...
 *	                                                                          |
 *	                                                                  span    V
 *	                                                                  | object | object | ...
 *
 * A span is a run of pages: cut into objects of one size class, or one large or sampled allocation.
 * Layouts change from month to month, and nothing tells the version: the one is taken by which the
 * spans' lists of free objects and their counts of used ones make up all of their objects.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/base/budget.h"
#include "analyzer/base/list.h"
#include "analyzer/heap/allocator.h"
#include "analyzer/heap/damage.h"
#include "analyzer/program/module_words.h"

enum {
	WORD = 8,
	ALIGNMENT = 8,
	ADDRESS_BITS = 48,
	MOST_CLASSES = 384,	/* with copies for NUMA nodes, partitions and cold objects */
	MOST_OBJECTS = 1 << 16, /* of a span: they are counted by 16 bits */
	MOST_SPAN_WORDS = 6,
	MOST_BITMAP_WORDS = 3,
	HUGE_PAGE = 2 << 20,
	RESERVED = 1 << 30,
};

/* The places in a Span, in bytes behind its links to others. */
struct span_layout {
	unsigned int size;
	/* The first page, whose number may share its word with flags. */
	unsigned int page;
	bool has_flags;	     /* a large or sampled span has some */
	bool flags_follow;   /* they are the next two bits; else they are among the upper 12 */
	bool count_follows;  /* and behind these, with one between, six bits of the page count */
	bool has_location;   /* bits 4 and 5 of byte 7 tell a free span */
	unsigned int pages;  /* their count */
	unsigned int large;  /* and that of a large or sampled one */
	unsigned int sample; /* the address of what is known of the sample */
	unsigned int objects, bitmap_words; /* bits of free objects, or some of their numbers */
	unsigned int allocated, embedded, list, cached;
	unsigned int cached_mask;
};

struct google_span {
	uint64_t start, bytes;
	uint64_t metadata; /* the address of the Span */
	uint64_t sample;   /* or 0: it is not sampled */
	uint32_t class;	   /* 0: one allocation */
	bool is_free;	   /* pages of no span, too: these have no Span */
};

static inline uint64_t span_end(const struct google_span *span)
{
	return span->start + span->bytes;
}

/* A proxy is an object that tcmalloc has allocated beside a sampled one, until 2025. */
enum cache_kind { CACHE_CPU, CACHE_THREAD, CACHE_TRANSFER, CACHE_PROXY };

/* A free object in a cache, or a proxy. */
struct cached_object {
	uint64_t address;
	uint32_t kind; /* enum cache_kind */
	uint32_t cpu;
};

struct google_tcmalloc {
	const struct module *module;
	const struct span_layout *layout;
	uint64_t root;
	unsigned int page_shift, leaf_bits;
	unsigned int links;	  /* bytes of a Span's links to others */
	unsigned int class_bytes; /* of a page's class in a leaf */
	bool has_nodes;		  /* between the root and leaves */
	unsigned int class_count; /* classes that spans have, and 0 */
	uint32_t classes[MOST_CLASSES];

	ARRAY(struct google_span) spans; /* by address, apart */
	ARRAY(struct memory_range) leaves;
	ARRAY(struct cached_object) cached;  /* by address */
	ARRAY(struct memory_range) metadata; /* by address, apart */
	uint64_t bytes;			     /* of spans and free pages */
	bool has_caches;		     /* of processors or threads */

	struct heap_damage overlaps, misfits, absent, counts, lists, lengths;
};

struct google_heap {
	struct heap heap;
	struct heap_context context;
	ARRAY(struct google_tcmalloc) list;
};

void google_tcmalloc_deinit(struct google_tcmalloc *tc);
DEFINE_DEINIT(google_tcmalloc_deinit, struct google_tcmalloc)

/* search.c: add all of the process to the heap. */
struct error *google_tcmalloc_search(struct google_heap *heap);

/*
 * spans.c: the page map, and what is in spans.
 */

/* A leaf of the page map at address: its number, from spans that begin at pages of its own. */
bool google_leaf_at(struct google_tcmalloc *tc, const struct image *image, uint64_t address,
		    struct budget *steps, uint64_t *ret_number);

/*
 * How many spans of objects in the leaf make sense, less those that do not, if the layout, the size
 * of pages and the like are those of tc.
 */
int64_t google_leaf_score(const struct google_tcmalloc *tc, const struct image *image,
			  uint64_t leaf, uint64_t number, struct budget *steps);

struct error *google_read_spans(struct google_tcmalloc *tc, const struct heap_context *context);

/*
 * tcmalloc reserves addresses by the GiB, which it uses by the huge page: these have spans, or
 * metadata, or, with GiB of their own since 2023, only metadata.
 */
static inline uint64_t reserved_start(uint64_t address)
{
	return address & ~(uint64_t)(RESERVED - 1);
}

/* Visit the anonymous memory in [start, end). */
struct error *google_visit_memory(const struct image *image, uint64_t start, uint64_t end,
				  struct error *(*visit)(void *data, uint64_t start, uint64_t end),
				  void *data);

/* Add what is neither in spans nor metadata, once all that is known. */
struct error *google_find_free_pages(struct google_tcmalloc *tc, const struct image *image);

/* The span that holds address, or NULL. */
const struct google_span *google_find_span(const struct google_tcmalloc *tc, uint64_t address);

static inline uint64_t span_object_count(const struct google_tcmalloc *tc,
					 const struct google_span *span)
{
	return span->bytes / tc->classes[span->class];
}

/* Report spans and their objects, and free pages. */
struct error *google_add_blocks(struct google_tcmalloc *tc, const struct heap_context *context,
				arena_number arena, struct block_sink *sink);

/*
 * caches.c: what processors, threads, and all of them keep.
 */

struct error *google_find_caches(struct google_tcmalloc *tc, const struct heap_context *context);

/* The cache that has the free object at address, or NULL. */
const struct cached_object *google_find_cached(const struct google_tcmalloc *tc, uint64_t address);

/*
 * sampled.c: calls that allocated what was sampled.
 */

struct google_sample {
	uint64_t wanted; /* bytes asked for */
	uint64_t bytes;	 /* that these became, also by an alignment; 0: it does not say */
	uint64_t proxy;	 /* an object that stands for it, or 0 */
	uint64_t calls;	 /* the address of their number; they follow */
};

bool google_read_sample(const struct google_tcmalloc *tc, struct view *view,
			const struct google_span *span, struct google_sample *ret);

extern const struct noting google_noting;
