/*
 * The contract of an allocator: how its heap is found and walked in a dump.
 *
 * Each file of allocators/ that defines a struct allocator named after itself is collected by the
 * build. A heap embeds struct heap as its first member.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/base/list.h"
#include "analyzer/base/progress.h"
#include "analyzer/base/ranges.h"
#include "analyzer/heap/index.h"
#include "analyzer/heap/noting.h"
#include "analyzer/program/program.h"

struct allocator;
struct debug_header;

/*
 * The memory that allocators got from the system, so that one does not take another's for its own:
 * several may use sbrk(), and mappings are merged.
 */
struct owned_memory {
	ARRAY(struct memory_range) ranges; /* by address, apart */
};

/* The first range that ends above address, or NULL; also if owned is. */
static inline const struct memory_range *owned_memory_find(const struct owned_memory *owned,
							   uint64_t address)
{
	size_t count = owned ? owned->ranges.count : 0;
	size_t number = count ? LIST_ABOVE(owned->ranges.items, count, end, address) : 0;

	return number < count ? &owned->ranges.items[number] : NULL;
}

/* The inputs of an allocator; all borrowed, all outliving the heap. */
struct heap_context {
	const struct image *image;
	const struct program *program;
	struct findings *findings;
	struct memory_account *account;
	struct progress *progress;
	/* Memory of the allocators, all of them once they are walked; may be NULL. */
	const struct owned_memory *owned;
};

static const size_t NO_ARENA = SIZE_MAX;

/* A kind of arena. */
struct arena_kind {
	const char *name;  /* "main" */
	const char *group; /* heading above a list of them: "Main arenas" */
	const char *used;  /* row of the bill for its used blocks; NULL: as other arenas */
	bool is_extra;	   /* made for speed: a single arena would have done */
};

/* A kind of free memory. */
struct free_kind {
	const char *name; /* "free list" */
	bool ends_heap;	  /* the end of a heap, from which it grows */
};

enum { MOST_FREE_KINDS = 8 };

/* An arena, as shown to the user. */
struct arena {
	const struct arena_kind *kind;
	uint64_t address;     /* of its control structure, or 0 */
	uint64_t size;	      /* bytes that it holds from the system */
	uint64_t stated_size; /* size by its own bookkeeping, or 0 */
};

struct heap {
	const struct allocator *allocator;
	struct range_list owned; /* which it got from the system, set by open(); in any order */
	/* Set by walk(); the allocation index numbers them from first_arena on. */
	ARRAY(struct arena) arenas;
	arena_number first_arena;
};

/* True if one of its arenas is at an address in [start, end): an allocator's lives_in. */
bool heap_has_arena_in(const struct heap *heap, uint64_t start, uint64_t end);

/*
 * Says whether the program's collector calls functions of the program that mark more than it finds
 * by itself, such as stacks that the program made.
 */
enum more_roots { MORE_ROOTS_NONE, MORE_ROOTS_UNKNOWN, MORE_ROOTS_CALLBACK };

/* The effect of trimming the heap on whole pages of free memory. */
enum spare_kind {
	SPARE_INSIDE, /* given back, from within a free block */
	SPARE_END,    /* given back: the end of a heap, which gets shorter */
	SPARE_KEPT,   /* kept: the end of a heap that stays as long as it is */
};

struct spare {
	uint64_t start, end; /* whole pages */
	enum spare_kind kind;
	arena_number arena;
};

/*
 * Memory that an allocator uses for something else, or gives back, only as a whole: once nothing in
 * it is in use. So a few blocks keep all of it.
 */
struct unit_kind {
	const char *name; /* "pool", "page", "chunk" */
	bool given_back;  /* an empty one may go back to the system; else to blocks of another size
			   */
};

struct heap_unit {
	const struct unit_kind *kind;
	uint64_t start, end;
	uint64_t block; /* the size of each block in it; 0: of several sizes */
};

typedef struct error *(*unit_visit)(void *data, const struct allocator *allocator,
				    const struct heap_unit *unit);

/* Slots without "required" may be NULL, false or 0; what that means is said of each. */
struct allocator {
	const char *name;    /* required */
	const char *summary; /* required */

	bool narrow;	 /* it reads processes with words of 4 bytes, too */
	bool is_private; /* functions of a language or a collector give its blocks, malloc() none */
	/* Its memory may lie in blocks of others: it is opened and walked behind them. */
	bool is_last;

	/* Required: starts of blocks and regions are multiples of it; a power of two, 8 or more. */
	unsigned int alignment;
	/* Required: kinds of arenas and of free memory, in the bill's order; no name ends each. */
	const struct arena_kind *arena_kinds;
	const struct free_kind *free_kinds;

	/* Required: the bytes of its heap, a struct that begins with struct heap. */
	size_t heap_size;
	/* Required: find the heap, given zeros. *ret stays false where the process has none. */
	struct error *(*open)(struct heap *heap, const struct heap_context *context, bool *ret);
	/* Required: release all but the struct, also if open() failed or found none. */
	void (*close)(struct heap *heap);
	/*
	 * Required: add all blocks and arenas. Damage goes to the findings, and the rest is walked.
	 *
	 * A heap may be nested, with regions inside a used block of another allocator, which then
	 * gives way: see nesting.h.
	 */
	struct error *(*walk)(struct heap *heap, struct block_sink *sink);

	/* True if the module at [start, end) implements it. NULL: it has no module of its own. */
	bool (*lives_in)(const struct heap *heap, uint64_t start, uint64_t end);
	/* True if the process ever used it. NULL: it did. */
	bool (*is_used)(const struct heap *heap);

	/* Which of free_kinds a free block of the number-th arena belongs to. NULL: the first. */
	unsigned int (*free_kind)(const struct heap *heap, size_t number, allocation_id id,
				  struct block block);
	/* Prepare what of that takes a pass over all; free_kind works without. */
	struct error *(*sort_free)(struct heap *heap, const struct allocation_index *index);
	/*
	 * The memory that a block of the number-th arena takes, with its header; kind: of a free
	 * one, else NULL. NULL: it has no header.
	 */
	struct memory_range (*extent)(const struct heap *heap, size_t number, struct block block,
				      const struct free_kind *kind);
	/*
	 * True if it may return size bytes for a request of wanted bytes, which is no larger;
	 * exactly: true only if it nearly always does. NULL: it rounds up to its alignment.
	 */
	bool (*size_fits)(uint64_t size, uint64_t wanted, bool exactly);
	/* True if the allocator uses the used block itself. NULL: none. */
	bool (*keeps)(const struct heap *heap, struct block block);
	/* The arena that has the bookkeeping at address, outside of its regions, or NO_ARENA. */
	size_t (*holds)(const struct heap *heap, uint64_t address);
	/* The number-th range that it reserved and does not use yet; false: no more. */
	bool (*reserved)(const struct heap *heap, size_t number, struct memory_range *ret);
	/*
	 * Visit the pages that it gives back to the system when the program asks for that, as by
	 * malloc_trim(0), and those at the ends of its heaps that it keeps. They do not overlap.
	 * NULL: unknown.
	 */
	void (*spare)(const struct heap *heap, const struct allocation_index *index,
		      void (*visit)(void *data, const struct spare *spare), void *data);

	/*
	 * Visit the units of its memory; those of one kind do not overlap, but may be in one of
	 * another. Their blocks are in the index. NULL: none are known.
	 */
	struct error *(*visit_units)(const struct heap *heap, unit_visit visit, void *data);

	/*
	 * Finds the stale links that it left in the first words of a used block, as a mask. NULL:
	 * it leaves none. They point to no block, or into the unit below one, where its header is,
	 * unless links_lead_anywhere; that costs time.
	 */
	unsigned int (*stale_links)(const struct heap *heap, const struct allocation_index *index,
				    uint64_t start, const uint64_t words[4]);
	bool links_lead_anywhere;
	/* Read what it put before the object in the used block at start: who made it. NULL:
	 * nothing. */
	bool (*read_debug_header)(const struct image *image, uint64_t start,
				  struct debug_header *ret);
	/* Calls that allocated, as it noted them; the owner is the heap. NULL: it notes none. */
	const struct noting *noting;
	/*
	 * For cores without contents (analyzer/slim). Visit its bookkeeping outside of its regions,
	 * as far as it is no addresses. NULL: such a core cannot have this heap.
	 */
	struct error *(*visit_structure)(const struct heap *heap, program_range_visitor *visit,
					 void *data);
	/* With extent and visit_structure: that visits heads, so that remains between blocks do not
	 * count as such. */
	bool visits_heads;
	/*
	 * With visit_structure: true if the word at this offset of the block, which is no address,
	 * is what it wrote there while the block was free. It must follow from what is known
	 * without the word, so that no remains of the program's are taken for it. NULL: nothing is.
	 */
	bool (*wrote)(const struct heap *heap, struct block block, uint64_t offset, uint64_t word);
	/*
	 * For collectors: whether more may be marked than the collector finds by itself. NULL: no.
	 */
	enum more_roots (*more_roots)(const struct heap *heap);

	/*
	 * Describe an address of its bookkeeping, or the start of a free block, as the words after
	 * "it is"; and, below, the used block at start. False: nothing to say.
	 */
	bool (*tell)(const struct heap *heap, uint64_t address, char *ret, size_t size);
	bool (*tell_used)(const struct heap *heap, uint64_t start, char *ret, size_t size);
};

extern const struct allocator *const allocators[]; /* NULL at the end */
