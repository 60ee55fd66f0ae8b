/*
 * The heap of the Boehm-Demers-Weiser collector (bdwgc, libgc) in a dump: what its parts share.
 *
 * Layouts are those of include/private/gc_priv.h of bdwgc 7.2 to 8.3 on x86-64. No version is asked
 * for: what differs is decided by what fits the dump.
 *
 *	module's data     bottom_index             hblkhdr
 *	GC_arrays ------> | slots | links | key |-> | size, kind, marks ... |
 *	(top_index)          one for each block         describes
 *	                                           block (4096 bytes)
 *	                                           | object | object | ...
 *
 * A block holds objects of one size and kind; one larger than half of a block starts a run of
 * blocks of its own. A free run has one header, too.
 */
#ifndef ALLOCATORS_BOEHM_BOEHM_H
#define ALLOCATORS_BOEHM_BOEHM_H

#include "analyzer/base/array.h"
#include "analyzer/base/bitmap.h"
#include "analyzer/base/findings.h"
#include "analyzer/heap/allocator.h"
#include "analyzer/image/view.h"

enum {
	GRANULE = 16,
	ARRAYS_HEAD = 1504, /* of GC_arrays, at most: before the free lists */
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

/* How a build of the collector cuts memory. */
struct boehm_geometry {
	unsigned int log_block; /* HBLKSIZE is 1 << log_block */
	unsigned int log_index; /* so many slots has a bottom_index */
};

/* Where hblkhdr has its fields after hb_descr: those of versions and builds. */
enum boehm_variant {
	VARIANT_A, /* 7.2 and 7.4 */
	VARIANT_B, /* from 7.6 on */
	VARIANT_C, /* a mark for each object, not for each 16 bytes */
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
	uint64_t arrays;     /* where in that data: inside of GC_arrays */
	uint64_t index;	     /* the lowest bottom_index */

	ARRAY(struct boehm_block) blocks; /* by address */
	ARRAY(uint64_t) indexes;	  /* the bottom indexes */
	uint64_t nils;			  /* GC_all_nils: an index of nothing; 0: not found */
	uint64_t object_count;
	uint64_t bad_slots; /* of indexes: that make no sense */
	uint64_t size;	    /* bytes of all blocks that are mapped */
	uint64_t unmapped;  /* and of those that are not */

	enum boehm_variant variant;
	bool byte_marks; /* or bits */

	uint64_t size_map;  /* 0: not found, and so no free lists */
	uint64_t freelists; /* of the kinds 1, 0, 2 and 3, in this order */
	bool extra_byte;    /* objects are one byte larger than asked for */
	uint64_t kinds;	    /* GC_obj_kinds; 0: not found */
	uint64_t kind_size;
	size_t kind_count;
	struct bitmap listed; /* objects on free lists, by number */
	struct bitmap cached; /* on those of threads */
	size_t broken_lists;
	ARRAY(uint64_t) spares;	 /* headers that no block has */
	ARRAY(uint64_t) threads; /* GC_Thread_Rep */

	uint64_t cycle;	    /* GC_gc_no, or its lower 16 bits */
	bool cycle_is_told; /* by the symbol */
	bool is_collecting; /* marks are not to be trusted */
	uint64_t undecided; /* objects that count as used for that */
};

struct range_list {
	ARRAY(struct memory_range) list;
};

struct boehm_heap {
	struct heap heap;
	struct heap_context context;
	struct collector *collectors;
	size_t collector_count;
	struct range_list owned;
	arena_number first_arena;
};

static inline uint64_t block_bytes(const struct collector *collector)
{
	return UINT64_C(1) << collector->geometry.log_block;
}

/* Larger objects have blocks of their own. */
static inline uint64_t largest_small(const struct collector *collector)
{
	return block_bytes(collector) / 2;
}

static inline const struct boehm_block *boehm_blocks(const struct collector *collector)
{
	return collector->blocks.items;
}

static inline bool is_free(const struct boehm_block *block)
{
	return block->flags & FLAG_FREE;
}

/* Free, with no memory behind it: the flag alone may be left over. */
static inline bool is_unmapped(const struct boehm_block *block)
{
	return is_free(block) && (block->flags & FLAG_UNMAPPED);
}

static inline bool is_small(const struct collector *collector, const struct boehm_block *block)
{
	return !is_free(block) && block->size <= largest_small(collector);
}

/* How many objects the block holds: a large one is alone, a free has none. */
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

#endif
