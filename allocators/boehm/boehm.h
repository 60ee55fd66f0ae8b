/*
 * The heap of the Boehm-Demers-Weiser collector (bdwgc, libgc) in a dump.
 *
 * Layouts are those of include/private/gc_priv.h of bdwgc 7.2 to 8.3, in words of the process: of 8
 * bytes, or of 4 on i386, where granules are half as large, too. No version number is read: where
 * versions differ, the layout that fits the dump counts.
 *
 *	module's data     bottom_index             hblkhdr
 *	GC_arrays ------> | slots | links | key |-> | size, kind, marks ... |
 *	(top_index)          one for each block         describes
 *	                                           block (4096 bytes)
 *	                                           | object | object | ...
 *
 * A block holds objects of one size and kind. An object larger than half a block has a run of
 *blocks of its own. A free run has one header, too.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/base/bitmap.h"
#include "analyzer/base/error.h"
#include "analyzer/base/list.h"
#include "analyzer/base/numbers.h"
#include "analyzer/heap/allocator.h"
#include "analyzer/image/view.h"
#include "analyzer/program/module_words.h"

enum {
	LARGEST_GRANULE = 16,
	ARRAYS_HEAD = 188, /* words of GC_arrays before the free lists, at most */
	FLAG_UNMAPPED = 2,
	FLAG_FREE = 4,
	FLAGS_KNOWN = 0x3f,
	MOST_KINDS = 32, /* upstream has 16, or 24 */

	KIND_ATOMIC = 0,
	KIND_NORMAL = 1,
	KIND_UNCOLLECTABLE = 2,
	KIND_ATOMIC_UNCOLLECTABLE = 3,
	KIND_FIRST_OWN = 4, /* kinds that the program made */
};

/* hblkhdr, by words. The link at its start is on a list of blocks to be swept. */
enum {
	HEADER_BLOCK = 2,
	HEADER_BYTES = 3, /* see below */
	HEADER_SIZE = 4,
	HEADER_DESCRIPTOR = 5,
	HEADER_TAIL = 6, /* differs between versions and builds */
};

/* In the word HEADER_BYTES, by bytes. */
enum {
	HEADER_KIND = 0,
	HEADER_FLAGS = 1,
	HEADER_SWEPT = 2,
	HEADER_INVERSE = 4, /* hb_inv_sz, of variant C */
};

enum { KIND_RECLAIM = 1 /* the word ok_reclaim_list, in GC_obj_kinds */ };

/* The unit sizes of a build of the collector. */
struct boehm_geometry {
	unsigned int log_block; /* HBLKSIZE is 1 << log_block */
	unsigned int log_index; /* a bottom_index has 1 << log_index slots */
	unsigned int word;	/* bytes: 8 or 4 */
};

/* The fields of hblkhdr from HEADER_TAIL on. */
enum boehm_variant {
	VARIANT_A, /* 7.2 and 7.4 */
	VARIANT_B, /* from 7.6 on */
	VARIANT_C, /* a mark for each object, not for each granule; known with words of 8 bytes */
};

/* A block of objects, a large object's run of blocks, or a free run. */
struct boehm_block {
	uint64_t start;
	uint64_t size;	 /* of an object; of all if free */
	uint64_t header; /* hblkhdr */
	uint64_t first;	 /* the number of its first object */
	uint16_t swept;	 /* hb_last_reclaimed: in which cycle */
	uint8_t kind;
	uint8_t flags;
	bool pointerless;
};

/* A collector's data in a module, and what it leads to. */
struct collector {
	struct boehm_geometry geometry;
	uint64_t start, end; /* of the module whose data leads to it */
	uint64_t arrays;     /* an address in GC_arrays, in that data */
	uint64_t index;	     /* the lowest bottom_index */

	ARRAY(struct boehm_block) blocks; /* by address */
	struct number_list indexes;	  /* the bottom indexes */
	uint64_t nils;			  /* GC_all_nils: an index of nothing; 0: not found */
	uint64_t object_count;
	uint64_t bad_slots; /* of indexes, without a valid header */
	uint64_t size;	    /* bytes of all mapped blocks */
	uint64_t unmapped;  /* and of the others */

	enum boehm_variant variant;
	bool byte_marks; /* or bits */

	uint64_t size_map;  /* 0: not found, and so no free lists */
	uint64_t freelists; /* of the kinds 1, 0, 2 and 3, in this order */
	bool extra_byte;    /* objects are one byte larger than asked for */
	uint64_t kinds;	    /* GC_obj_kinds; 0: not found */
	uint64_t kind_size;
	size_t kind_count;    /* 0 without kinds */
	struct bitmap listed; /* objects on free lists, by number */
	struct bitmap cached; /* on those of threads */
	size_t broken_lists;
	ARRAY(uint64_t) spares;	 /* headers that no block has */
	ARRAY(uint64_t) threads; /* GC_Thread_Rep */
	struct range_list thread_lists;

	uint64_t cycle;	    /* GC_gc_no, or its lower 16 bits */
	bool is_collecting; /* marks are incomplete */
	uint64_t undecided; /* objects that count as used because of that */
};

struct boehm_heap {
	struct heap heap;
	struct heap_context context;
	struct collector *collectors;
	size_t collector_count;
};

/* Bytes of so many words. */
static inline uint64_t words(const struct collector *collector, uint64_t count)
{
	return collector->geometry.word * count;
}

/* The address that a complemented word hides. */
static inline uint64_t complement(const struct collector *collector, uint64_t word)
{
	return word ^ UINT64_MAX >> (64 - 8 * collector->geometry.word);
}

/* Sizes of objects are multiples of it. */
static inline unsigned int granule(const struct boehm_geometry *geometry)
{
	return 2 * geometry->word;
}

static inline uint64_t block_bytes(const struct collector *collector)
{
	return UINT64_C(1) << collector->geometry.log_block;
}

/* Larger objects have blocks of their own. */
static inline uint64_t largest_small(const struct collector *collector)
{
	return block_bytes(collector) / 2;
}

static inline bool is_free(const struct boehm_block *block)
{
	return block->flags & FLAG_FREE;
}

/* Free, without memory. The flag alone may be stale. */
static inline bool is_unmapped(const struct boehm_block *block)
{
	return is_free(block) && (block->flags & FLAG_UNMAPPED);
}

static inline bool is_small(const struct collector *collector, const struct boehm_block *block)
{
	return !is_free(block) && block->size <= largest_small(collector);
}

/* How many objects the block holds: one, if it is large; none, if the block is free. */
static inline uint64_t object_slots(const struct collector *collector,
				    const struct boehm_block *block)
{
	if (is_free(block))
		return 0;
	return is_small(collector, block) ? block_bytes(collector) / block->size : 1;
}

/* The end of the block or of its run. */
static inline uint64_t block_end(const struct collector *collector, const struct boehm_block *block)
{
	uint64_t mask = block_bytes(collector) - 1;

	return is_small(collector, block) ? block->start + block_bytes(collector)
					  : block->start + ((block->size + mask) & ~mask);
}

/* How far an index's key is shifted to be the address of the first slot's block. */
static inline unsigned int key_shift(const struct boehm_geometry *geometry)
{
	return geometry->log_block + geometry->log_index;
}

/* The fields of a bottom_index behind its slots, by words. */
enum index_field {
	INDEX_UPWARD,	 /* asc_link */
	INDEX_DOWNWARD,	 /* desc_link */
	INDEX_KEY,	 /* see key_shift() */
	INDEX_HASH_LINK, /* the next with the same low bits of the key, or GC_all_nils; only with
			    words of 8 bytes */
	INDEX_TAIL,
};

static inline uint64_t index_field(const struct boehm_geometry *geometry, uint64_t index,
				   enum index_field field)
{
	return index + geometry->word * ((UINT64_C(1) << geometry->log_index) + field);
}

static inline uint64_t index_size(const struct boehm_geometry *geometry)
{
	return index_field(geometry, 0, INDEX_TAIL);
}

/* The address of a kind's descriptor in GC_obj_kinds. */
static inline uint64_t kind_entry(const struct collector *collector, size_t kind)
{
	return collector->kinds + kind * collector->kind_size;
}

/* How many heads the free lists of a kind have. */
static inline uint64_t list_heads(const struct collector *collector)
{
	return largest_small(collector) / granule(&collector->geometry) + 1;
}

/*
 * search.c: finding collectors.
 */

/* Add all collectors of the process to the heap, with their blocks. */
struct error *boehm_search(struct boehm_heap *heap);

/* Visit the data of the module with the collector's variables. */
static inline struct error *boehm_visit_own_data(
	const struct collector *collector, const struct image *image,
	struct error *(*visit)(void *data, uint64_t where, uint64_t word), void *data)
{
	return data_visit_words(image, collector->start, collector->end, visit, data);
}

/*
 * blocks.c: from bottom indexes to the table of blocks, and the marks of their objects.
 */

/* True if a bottom_index is at address, by its key and its links to others. */
bool boehm_is_index(struct view *view, const struct boehm_geometry *geometry, uint64_t address);

/* True if most of the first used slots of the index lead to headers. */
bool boehm_leads_to_blocks(struct view *view, const struct boehm_geometry *geometry,
			   uint64_t address);

/*
 * Read all blocks, from the lowest index on. *ret_valid: there are used blocks, and hardly any bad
 * slots.
 */
struct error *boehm_read_blocks(struct collector *collector, const struct heap_context *context,
				bool *ret_valid);

/* The block that holds address, or NULL. *hint is 0 at first. */
const struct boehm_block *boehm_find_block(const struct collector *collector, uint64_t address,
					   size_t *hint);

/* The block of the object that starts at address, and its number; NULL: there is none. */
const struct boehm_block *boehm_find_object(const struct collector *collector, uint64_t address,
					    size_t *hint, uint64_t *ret_number);

/*
 * Decide the variant of the headers and of the marks, which depend on how the collector was built,
 * by a vote of all headers.
 */
void boehm_calibrate(struct collector *collector, const struct image *image);

/* The marks of a block's objects. */
struct marks {
	uint8_t bytes[(1 << 16) / 8 + 1]; /* of the largest blocks */
};

/* Read the marks of the block; none are set if they are not in the dump. */
void boehm_read_marks(const struct collector *collector, const struct image *image,
		      const struct boehm_block *block, struct marks *ret);

/* True if the block's slot-th object is marked. */
bool boehm_is_marked(const struct collector *collector, const struct boehm_block *block,
		     const struct marks *marks, uint64_t slot);

/* The size of a header, with its marks. */
uint64_t boehm_header_size(const struct collector *collector);

/*
 * lists.c: free objects, which are on lists.
 */

/* True if size_map is at address; *ret_extra: objects have an extra byte. */
bool boehm_is_size_map(struct view *view, const struct boehm_geometry *geometry, uint64_t address,
		       bool *ret_extra);

/* Find the lists, and fill in the free objects. */
struct error *boehm_read_lists(struct collector *collector, const struct heap_context *context);

/*
 * objects.c: the state of each object.
 */

enum object_state {
	OBJECT_USED,
	OBJECT_FREE,
	OBJECT_CACHED,
	OBJECT_DEAD,
	OBJECT_UNDECIDED, /* used or dead: there are no marks to decide */
};

/* Fill in the cycle, and whether a collection is under way. */
void boehm_find_cycle(struct collector *collector, const struct heap_context *context);

/* The state of the block's slot-th object; the marks are the block's. */
enum object_state boehm_object_state(const struct collector *collector,
				     const struct boehm_block *block, const struct marks *marks,
				     uint64_t slot);

/* Report all blocks and objects of the collector; count the undecided ones. */
struct error *boehm_add_objects(struct collector *collector, const struct heap_context *context,
				arena_number arena, struct block_sink *sink);

/*
 * bookkeeping.c: memory that a collector uses for itself: headers, indexes, lists, stacks for
 * marking. Pointers there hold nothing.
 */

/* Find the free headers: they still name blocks. */
struct error *boehm_find_spares(struct collector *collector, const struct heap_context *context);

struct error *boehm_claim_bookkeeping(const struct collector *collector,
				      const struct heap_context *context, struct block_sink *sink);

/* Visit what of that has other words than addresses, and none of the program's. */
struct error *boehm_visit_bookkeeping(const struct collector *collector,
				      const struct heap_context *context,
				      program_range_visitor *visit, void *data);

/* structure.c: see allocator.h. */
struct error *boehm_visit_structure(const struct heap *base, program_range_visitor *visit,
				    void *data);

/* Add to ranges all memory that the collector got from the system. */
struct error *boehm_add_owned(const struct collector *collector, struct range_list *ranges);

/* GC_mark_state, which is 0 except during a collection; false if it is not found, as before 8.2. */
bool boehm_mark_state(const struct collector *collector, const struct heap_context *context,
		      uint32_t *ret);

/*
 * tell.c: addresses in words, and the collector's own objects.
 */

/*
 * True if the used object at address is the collector's own. It keeps disappearing links,
 * finalizers, tables of them, threads and the lists of own kinds in its heap, as objects like those
 * of the program, and they are recognised by their contents.
 */
bool boehm_is_internal(const struct collector *collector, const struct image *image,
		       uint64_t address);

/*
 * Bits of the words that are complements of addresses, of what is at address in a block of objects
 * of that size and kind; 0: it is neither a disappearing link nor a finalizer.
 */
unsigned int boehm_complements(const struct collector *collector, const struct image *image,
			       uint64_t address);

/* The slots tell and tell_used. */
bool boehm_tell(const struct heap *base, uint64_t address, char *ret, size_t size);
bool boehm_tell_used(const struct heap *base, uint64_t start, char *ret, size_t size);
