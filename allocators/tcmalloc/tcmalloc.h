/*
 * The heap of gperftools' tcmalloc 2.8 to 2.18 in a dump.
 *
 * Layouts are those of src (pagemap.h, span.h, page_heap.h, central_freelist.h, thread_cache.h,
 * common.h) of gperftools 2.8.1, 2.10, 2.16 and 2.18.1; they are the same in all. Words are those
 *of the process: of 4 bytes on i386.
 *
 *	module's data     leaf                        Span
 *	page map root --> | word for each page | ---> | start | length | ... | objects | bits |
 *	                                                 |
 *	                                          span   V
 *	                                          | object | object | object ... |
 *
 * A span is a run of pages: cut into objects of one size class, or one large allocation, or free.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/base/list.h"
#include "analyzer/heap/allocator.h"
#include "analyzer/heap/damage.h"
#include "analyzer/program/module_words.h"

enum {
	ALIGNMENT = 8,
	MOST_CLASSES = 128,
	MOST_OBJECTS = 1 << 16, /* of a span: they are counted by 16 bits */
	SPAN_WORDS = 6,
	CACHE_REST = 128,  /* behind the lists: links to other caches, among others */
	ADDRESS_BITS = 48, /* at most: see address_bits() */
};

/* A Span, as the program has it. */
struct span_words {
	uint64_t start, length; /* in pages */
	uint64_t next, previous;
	uint64_t objects; /* the first free one, or, of a sampled allocation, its StackTrace */
	uint64_t bits;
};

enum span_location { SPAN_IN_USE, SPAN_NORMAL, SPAN_RETURNED };

struct tcmalloc_span {
	uint64_t start, bytes;
	uint64_t metadata; /* the address of the Span */
	uint64_t objects;
	uint32_t bits;
};

static inline unsigned int span_refcount(const struct tcmalloc_span *span)
{
	return span->bits & UINT16_MAX;
}

static inline unsigned int span_class(const struct tcmalloc_span *span)
{
	return span->bits >> 16 & UINT8_MAX;
}

static inline unsigned int span_location(const struct tcmalloc_span *span)
{
	return span->bits >> 24 & 3;
}

static inline bool span_is_sampled(const struct tcmalloc_span *span)
{
	return span->bits >> 26 & 1;
}

static inline uint64_t span_end(const struct tcmalloc_span *span)
{
	return span->start + span->bytes;
}

/* A free object in a cache: the cache's number, or TRANSFER_CACHE. */
struct cached_object {
	uint64_t address;
	uint32_t cache;
};

static const uint32_t TRANSFER_CACHE = UINT32_MAX;

struct tcmalloc_cache {
	uint64_t address;
	uint32_t thread; /* the kernel's number, or 0: not known */
};

/* A tcmalloc: a process may have several. */
struct tcmalloc {
	const struct module *module;
	uint64_t root;
	unsigned int word; /* bytes: 8 or 4 */
	unsigned int page_shift, leaf_bits;
	unsigned int class_count; /* with class 0, which has no size */
	uint64_t classes[MOST_CLASSES];
	uint64_t class_table; /* the address of these, each of 4 bytes */

	ARRAY(struct tcmalloc_span) spans; /* by address, apart */
	ARRAY(struct memory_range) leaves;
	ARRAY(struct tcmalloc_cache) caches;
	ARRAY(struct cached_object) cached;  /* by address */
	ARRAY(struct memory_range) metadata; /* by address, apart */
	struct range_list pools;     /* variables that say how full the chunks of metadata are */
	struct memory_range central; /* the central caches */
	uint64_t bytes;		     /* of spans */

	struct heap_damage overlaps, misfits, absent, counts, lengths;
	struct heap_list_damage lists;
};

struct tcmalloc_heap {
	struct heap heap;
	struct heap_context context;
	ARRAY(struct tcmalloc) list;
};

static inline unsigned int address_bits(const struct tcmalloc *tc)
{
	return tc->word == sizeof(uint64_t) ? ADDRESS_BITS : 32;
}

static inline uint64_t tcmalloc_root_bytes(const struct tcmalloc *tc)
{
	return (uint64_t)tc->word << (address_bits(tc) - tc->page_shift - tc->leaf_bits);
}

static inline uint64_t span_bytes(const struct tcmalloc *tc)
{
	return SPAN_WORDS * (uint64_t)tc->word;
}

/* Bytes for each class in a thread cache: a word, four numbers of half a word, and a size. */
static inline uint64_t list_bytes(const struct tcmalloc *tc)
{
	return 4 * (uint64_t)tc->word;
}

/* Bytes for all classes in a thread cache; its other fields follow. */
static inline uint64_t lists_bytes(const struct tcmalloc *tc)
{
	return list_bytes(tc) * MOST_CLASSES;
}

/* Read the Span at address. */
static inline bool read_span_words(struct view *view, uint64_t address, struct span_words *ret)
{
	uint32_t narrow[SPAN_WORDS];

	if (image_word_size(view->image) == sizeof(uint64_t))
		return view_read(view, address, ret, sizeof(*ret));
	if (!view_read(view, address, narrow, sizeof(narrow)))
		return false;
	*ret =
		(struct span_words){ narrow[0], narrow[1], narrow[2],
				     narrow[3], narrow[4], narrow[5] };
	return true;
}

void tcmalloc_deinit(struct tcmalloc *tc);
DEFINE_DEINIT(tcmalloc_deinit, struct tcmalloc)

/* structure.c: see allocator.h. */
struct error *tcmalloc_visit_structure(const struct heap *base, program_range_visitor *visit,
				       void *data);

/* search.c: add all tcmallocs of the process to the heap. */
struct error *tcmalloc_search(struct tcmalloc_heap *heap);

/*
 * spans.c: the page map, and what is in spans.
 */

/* True if a leaf of the page map is at address; *ret_upper is its number in the root. */
bool tcmalloc_is_leaf(struct view *view, struct view *spans, unsigned int leaf_bits,
		      uint64_t address, uint64_t *ret_upper);

/* Read all spans, by the size of pages that fits them. False in *ret: none does. */
struct error *tcmalloc_read_spans(struct tcmalloc *tc, const struct heap_context *context,
				  bool *ret);

/* The span that holds address, or NULL. */
const struct tcmalloc_span *tcmalloc_find_span(const struct tcmalloc *tc, uint64_t address);

/* The number of objects in the span. */
static inline uint64_t span_object_count(const struct tcmalloc *tc,
					 const struct tcmalloc_span *span)
{
	return span->bytes / tc->classes[span_class(span)];
}

/* Report spans and their objects. */
struct error *tcmalloc_add_blocks(struct tcmalloc *tc, const struct heap_context *context,
				  arena_number arena, struct block_sink *sink);

/* sampled.c: calls that allocated what was sampled. */
extern const struct noting tcmalloc_noting;

/*
 * caches.c: what threads, and the central caches for all of them, keep.
 */

struct error *tcmalloc_find_caches(struct tcmalloc *tc, const struct heap_context *context);

/* The cache that has the free object at address, or NULL. */
const struct cached_object *tcmalloc_find_cached(const struct tcmalloc *tc, uint64_t address);
