/*
 * glibc malloc's heap in a dump: what its parts share.
 *
 * Layouts are those of malloc/malloc.c and malloc/arena.c of glibc 2.12 to 2.43. No version number
 * is trusted, because distributions backport: where versions differ, the layout that fits the dump
 * counts.
 *
 *	chunk             user's memory
 *	| prev | size+flags | fd | bk | ...          | prev | size ...
 *	p      p+8          p+16                     p+size
 *
 * Offsets are those of words of 8 bytes: SIZE_SZ of malloc.c. With words of 4, all but the
 * alignment of the user's memory are half of it, so that chunks begin at 8 above a multiple of 16;
 * before 2.26, that is half as well: then chunks begin at any multiple of 8.
 *
 * prev belongs to the chunk below while that is in use, or to none if malloc gives memory tags
 * (glibc.mem.tagging of aarch64), as these are of 16 bytes. A chunk is free if the next one's
 * PREV_INUSE is clear, or if it is in a thread's cache (tcache) or a fast bin: those keep the flag
 * set.
 */
#pragma once

#include "analyzer/base/address_map.h"
#include "analyzer/base/array.h"
#include "analyzer/base/budget.h"
#include "analyzer/base/error.h"
#include "analyzer/base/numbers.h"
#include "analyzer/heap/allocator.h"
#include "analyzer/heap/cycle.h"
#include "analyzer/heap/index.h"
#include "analyzer/image/view.h"

enum {
	PREV_INUSE = 1,
	IS_MMAPPED = 2,
	NON_MAIN_ARENA = 4,
	FLAGS = 7,

	ALIGNMENT = 16, /* of the user's memory, and of sizes of chunks, unless they are narrow and
			   old */
	BINS = 127,
};

/* Sizes that depend on that of words. */
static inline uint64_t glibc_header(unsigned int word) /* from a chunk to the user's memory */
{
	return 2 * (uint64_t)word;
}

static inline uint64_t glibc_minimum(unsigned int word) /* chunk */
{
	return 4 * (uint64_t)word;
}

static inline uint64_t glibc_fence(unsigned int word) /* the size of a fencepost */
{
	return 2 * (uint64_t)word;
}

/* The lists that hold free chunks, as numbers in glibc_free_kinds. */
enum {
	FREE_TCACHE,   /* a thread's cache */
	FREE_FAST,     /* a fast bin */
	FREE_UNSORTED, /* the unsorted bin */
	FREE_SMALL,    /* a bin of one size */
	FREE_LARGE,    /* a bin of a range of sizes */
	FREE_TOP,      /* the end of a heap, from which it grows */
};

/* Offsets of the fields of malloc_state. */
struct arena_layout {
	uint64_t fastbins; /* 0: there are none */
	uint64_t top;
	uint64_t bins;
	uint64_t next; /* arena in the ring of all */
	uint64_t system_memory;
	uint64_t size;
	unsigned int grain; /* alignment of the user's memory */
	bool caches;	    /* threads have one: tcache */
};

struct glibc_arena {
	const struct arena_layout *layout;
	uint64_t address;
	bool main;
	bool locked; /* a thread was changing it */
	/* A thread was, but the process died of a fault there or near: the arena may be its cause,
	 * or only unfinished. */
	bool in_fault;
	uint16_t put_off;     /* fast bins whose lists are followed later, as bits */
	uint64_t top;	      /* chunk */
	uint64_t stated_size; /* its system_mem */
	uint64_t size;	      /* bytes found */
	uint64_t base;	      /* start of its part from sbrk(); 0: it has none */
};

/* A mapped heap of an arena that is not the main one: heap_info. */
struct glibc_subheap {
	uint64_t start, end;
	uint64_t limit; /* it may grow up to here: addresses are reserved */
	uint64_t first; /* chunk */
	size_t arena;
};

/* The fields of mp_ that were found: malloc's parameters and counts. */
struct glibc_parameters {
	size_t arena;	/* the number of theirs */
	uint64_t base;	/* sbrk_base: where the main heap begins; 0: unknown */
	uint64_t place; /* the address of that field; 0: not found */
	bool is_of_top; /* the heap's end is in the region of base */
	uint32_t mapped_count;
	uint64_t mapped_size;
};

/* The sums of hashes of the chunks' links in each direction; see glibc_add_links(). */
struct glibc_links {
	uint64_t seed;	/* of the hash */
	uint64_t small; /* larger chunks have links to the next size, too */
	uint64_t forth, back;
};

/* A thread and its cache. */
struct thread_cache {
	uint64_t tcache;
	uint32_t thread;
};

enum glibc_fault {
	FAULT_LINK,	 /* it leads elsewhere */
	FAULT_KEY,	 /* a cached block lacks the key of cached ones */
	FAULT_TWICE,	 /* a list returns to the block, or several have it */
	FAULT_LEFT_OVER, /* a list of no blocks still begins with the block */
};

/* A list that was found broken before the blocks beside it were known. */
struct glibc_broken_list {
	const char *kind; /* "thread cache", "fast bin" */
	uint64_t size;	  /* of its chunks */
	uint64_t owner;	  /* the arena or tcache */
	uint64_t user;	  /* the memory in which a link is wrong */
	enum glibc_fault fault;
	uint64_t next; /* memory that the link leads to */
};

/* How the header of the next chunk agrees with what is otherwise known of a chunk. */
enum glibc_foot {
	FOOT_FITS,
	FOOT_LOST,   /* the chunk is free, in a bin, and the copy of its size at its end is wrong */
	FOOT_UNREAL, /* the chunk is said to be free, and no list has it */
	FOOT_TWICE,  /* it is in a bin, and in a list of chunks that look used as well */
};

struct glibc_odd_foot {
	enum glibc_foot kind;
	uint64_t chunk, size, foot;
	bool locked; /* its arena, by a thread */
};

struct glibc_heap {
	struct heap heap;
	struct heap_context context;
	unsigned int word;	  /* bytes, 8 or 4 */
	uint64_t header, minimum; /* as the functions above have them */
	/* Bytes of a chunk that are not its block's: a word, or with memory tags the header. */
	uint64_t overhead;
	unsigned int grain; /* the first arena's; of all, as one libc's */
	bool caches;
	struct glibc_arena *arenas;
	size_t arena_count;
	struct address_map arena_numbers;
	struct number_list arena_addresses; /* sorted */
	uint64_t lowest_arena, end_of_arenas;
	uint64_t home;			/* an address in the data of malloc's module */
	struct glibc_subheap *subheaps; /* by address */
	size_t subheap_count;
	struct glibc_parameters *parameters; /* one for each main arena */
	size_t parameters_count;

	/* Chunks that are free though they look used, by address. */
	struct number_list cached, fast;
	ARRAY(struct thread_cache) thread_caches;
	struct number_list tcaches;  /* their memory */
	struct number_list suspects; /* blocks that look like one */
	struct budget piece_steps;   /* of glibc_is_piece() */
	struct budget ring_steps;    /* of following rings of arenas */
	uint64_t tcache_key;	     /* in the second word of cached chunks */
	bool mangled;		     /* the links of cached and fast chunks */
	bool mangling_known;
	bool cache_damaged, fast_damaged;
	struct glibc_broken_list *broken;
	size_t broken_count;
	struct glibc_odd_foot *odd_feet;
	size_t odd_feet_count;

	bool fast_put_off; /* lists of fast bins are followed later; see glibc_note_fast() */
	ARRAY(struct fast_link) fast_links;

	struct glibc_links links; /* of chunks in bins */
	struct bitmap unsorted;	  /* chunks in unsorted bins, once that is needed */

	/* Chunks that a list names, to go on from behind damage. */
	struct number_list vouched;
	bool vouched_known;

	/* Between parts of a main arena, by address: malloc may have mapped chunks there, too. */
	ARRAY(struct memory_range) gaps;
	uint64_t mapped_count, mapped_size; /* mmapped chunks found */
	uint64_t mapped_gap;		    /* behind one, where another might be; or 0 */
	size_t first_block;		    /* of this heap in the sink */
	struct glibc_ring_memo *rings;	    /* see rings.h; NULL: memory was short */
};

/* The distance of chunks above a multiple of heap->grain. */
static inline uint64_t glibc_offset(const struct glibc_heap *heap)
{
	return heap->header % heap->grain;
}

/* The start of the region that begins with that chunk: a multiple of heap->grain. */
static inline uint64_t glibc_region_start(const struct glibc_heap *heap, uint64_t chunk)
{
	return chunk - glibc_offset(heap);
}

/* From the first fence on, both and what alignment left behind them. */
static inline uint64_t glibc_fences(const struct glibc_heap *heap)
{
	return 2 * glibc_fence(heap->word) + glibc_offset(heap);
}

/* The size of heap_info, behind which an arena or a chunk follows: user's memory is aligned. */
static inline uint64_t glibc_heap_head(unsigned int word, unsigned int grain)
{
	return 4 * word + (-6 * (uint64_t)word & (grain - 1));
}

/* The first place of a chunk at or above address. */
static inline uint64_t glibc_chunk_above(const struct glibc_heap *heap, uint64_t address)
{
	uint64_t offset = glibc_offset(heap), grain = heap->grain;

	return ((address + grain - 1 - offset) & ~(grain - 1)) + offset;
}

/* The last one at or below address. */
static inline uint64_t glibc_chunk_below(const struct glibc_heap *heap, uint64_t address)
{
	uint64_t offset = glibc_offset(heap);

	return ((address - offset) & ~((uint64_t)heap->grain - 1)) + offset;
}

static inline bool glibc_may_be_chunk(const struct glibc_heap *heap, uint64_t address)
{
	return address % heap->grain == glibc_offset(heap);
}

/* True if a piece of a main arena was not found. Alignment takes less than a page. */
static inline bool glibc_arena_lacks(const struct glibc_arena *arena)
{
	return arena->main && arena->stated_size >= PAGE &&
	       arena->size <= arena->stated_size - PAGE;
}

/* The size of chunks in that bin of a cache. */
static inline uint64_t glibc_bin_size(const struct glibc_heap *heap, unsigned int bin)
{
	return heap->minimum + UINT64_C(16) * bin;
}

/* The chunk size of that fast bin. On 32-bit machines, every other bin is empty since 2.26. */
static inline uint64_t glibc_fast_size(const struct glibc_heap *heap, unsigned int bin)
{
	return heap->minimum + 2 * (uint64_t)heap->word * bin;
}

static inline unsigned int glibc_fastbins(const struct glibc_heap *heap)
{
	return heap->word == 4 && heap->grain == ALIGNMENT ? 11 : 10;
}

static inline uint64_t glibc_largest_fast(const struct glibc_heap *heap)
{
	return glibc_fast_size(heap, glibc_fastbins(heap) - 1);
}

/* The largest chunk in a small bin. */
static inline uint64_t glibc_largest_small(const struct glibc_heap *heap)
{
	return heap->word == 8 ? 0x3f0 : heap->grain == ALIGNMENT ? 0x3e0 : 0x1f8;
}

static inline uint64_t glibc_fastbin(const struct glibc_heap *heap, const struct glibc_arena *arena,
				     unsigned int bin)
{
	return arena->address + arena->layout->fastbins + heap->word * (uint64_t)bin;
}

/* The target of the link stored at where. */
static inline uint64_t glibc_demangle(const struct glibc_heap *heap, uint64_t where, uint64_t link)
{
	return heap->mangled ? link ^ (where >> 12) : link;
}

/* The size in the header of a chunk, without flags. */
static inline uint64_t header_size(uint64_t header)
{
	return header & ~(uint64_t)FLAGS;
}

/* The size of the chunk with its header, or 0 if it cannot be read. */
static inline uint64_t view_chunk_size(struct view *view, uint64_t chunk)
{
	uint64_t size;

	return view_word(view, chunk + image_word_size(view->image), &size) ? header_size(size) : 0;
}

/* Bytes of the next chunk that a block may use. */
static inline uint64_t glibc_shared(const struct glibc_heap *heap)
{
	return heap->header - heap->overhead;
}
