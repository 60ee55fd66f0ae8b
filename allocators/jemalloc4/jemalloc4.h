/*
 * The heap of jemalloc 3.6 and 4.5 in a dump.
 *
 * Layouts are those of include/jemalloc/internal (arena.h, extent.h, tcache.h, bitmap.h, rb.h) and
 * src/arena.c of jemalloc 3.6.0 and 4.5.0. No version is read: the layout counts that fits.
 *
 *	chunk, 2 or 4 MiB, aligned to that
 *	| arena ... | map: a word for each page ... |  run  |  run  |  run ... |
 *
 * The words of a run's pages say what it is: free, one large allocation, or regions of one size
 * class, whose bitmap is in the header of the chunk (4.5) or of the run (3.6).
 */
#ifndef ALLOCATORS_JEMALLOC4_JEMALLOC4_H
#define ALLOCATORS_JEMALLOC4_JEMALLOC4_H

#include "allocators/jemalloc/jemalloc.h"
#include "analyzer/heap/damage.h"
#include "analyzer/program/module_words.h"

enum {
	LOG_PAGE = 12,
	REGIONS_MOST = 1 << 11, /* of a run */
	BITMAP_WORDS = REGIONS_MOST / 64,
};

/* How a version builds chunks. */
struct chunk_form {
	unsigned int log_chunk;
	unsigned int map;	/* where the map is */
	unsigned int map_bytes; /* of the element of a page, ... */
	unsigned int map_bits;	/* and where its word is in that */
	unsigned int
		run_bytes; /* of what the chunk has of a run, behind the map; 0: runs have it */
	unsigned int run_header; /* where the number of free regions is in that, or in the run */
	unsigned int size_shift; /* sizes in the word are so many bits higher */
	unsigned int flag_bits;	 /* the class of a run follows */
	unsigned int dirty;	 /* the flag */
	bool has_self;		 /* the second word of a chunk is its address */
	bool is_rising;		 /* caches: stacks end where bins say, else begin */
};

enum run_kind { RUN_CLEAN, RUN_DIRTY, RUN_LARGE, RUN_SMALL, RUN_HUGE, RUN_CHUNKS };

struct run {
	uint64_t start, bytes;
	uint64_t header; /* of a small one: where the number of its free regions is */
	enum run_kind kind;
	uint16_t class;
	uint16_t arena; /* its number */
};

struct chunk {
	uint64_t start;
	uint64_t end; /* of runs that are known */
	uint16_t arena;
};

struct jemalloc4_heap {
	struct heap heap;
	struct heap_context context;
	const struct chunk_form *form;
	struct jemalloc_layout layout; /* the size classes */
	unsigned int bias;	       /* pages of a chunk's header */
	uint64_t module_start, module_end;

	ARRAY(struct chunk) chunks; /* by address */
	ARRAY(struct run) runs;	    /* by address, apart */
	ARRAY(struct jemalloc_arena) arenas;
	struct address_list cached; /* starts of allocations in caches, by address */
	struct address_list own;    /* allocations that are jemalloc's own, by address */
	struct range_list bases;    /* memory for metadata */
	struct range_list owned;
	struct heap_damage chunks_cut, bitmaps, strangers;
	struct heap_list_damage lists;
};

static inline uint64_t chunk_bytes(const struct jemalloc4_heap *heap)
{
	return UINT64_C(1) << heap->form->log_chunk;
}

static inline uint64_t run_end(const struct run *run)
{
	return run->start + run->bytes;
}

/* The regions of a small run: how large, how many, where the first is. */
struct regions {
	uint64_t first, bytes, count;
};

/*
 * chunks.c: chunks and their runs.
 */

/* Find chunks, and the form that they have; false: there are none. */
struct error *jemalloc4_find_chunks(struct jemalloc4_heap *heap, bool *ret);

/* List the runs of all chunks, and decide about the quantum. */
struct error *jemalloc4_read_runs(struct jemalloc4_heap *heap);

struct regions jemalloc4_regions(const struct jemalloc4_heap *heap, const struct run *run);

/* The run that holds address, or NULL. */
const struct run *jemalloc4_find_run(const struct jemalloc4_heap *heap, uint64_t address);

/* The allocation that holds address; false: there is none. A cached or free region is one, too. */
bool jemalloc4_find_region(const struct jemalloc4_heap *heap, uint64_t address,
			   struct memory_range *ret);

struct error *jemalloc4_add_blocks(struct jemalloc4_heap *heap, arena_number first,
				   struct block_sink *sink);

/*
 * huge.c: allocations of whole chunks, and free chunks.
 */
struct error *jemalloc4_find_huge(struct jemalloc4_heap *heap);

/* The address of the module's word that leads to an arena, or to an array with one; 0: none. */
struct error *jemalloc4_find_module(struct jemalloc4_heap *heap, bool *ret);

/*
 * tcaches.c: what threads keep.
 */
struct error *jemalloc4_find_caches(struct jemalloc4_heap *heap);

#endif
