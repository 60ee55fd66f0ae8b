/*
 * The contract of an allocator: how its heap is found and walked in a dump.
 *
 * Each file of allocators/ that defines a struct allocator named after itself is collected by the
 * build. A heap embeds struct heap as its first member.
 */
#ifndef ANALYZER_HEAP_ALLOCATOR_H
#define ANALYZER_HEAP_ALLOCATOR_H

#include "analyzer/base/progress.h"
#include "analyzer/heap/index.h"
#include "analyzer/heap/owned.h"
#include "analyzer/program/program.h"

struct allocator;

struct heap {
	const struct allocator *allocator;
};

/* What an allocator works on; all borrowed, all outliving the heap. */
struct heap_context {
	const struct image *image;
	const struct program *program;
	struct findings *findings;
	struct memory_account *account;
	struct progress *progress;
	/* What is other allocators', of those opened so far; may be NULL. */
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
	const char *name; /* "fast bin" */
	bool ends_heap;	  /* the end of a heap, from which it grows */
};

enum { MOST_FREE_KINDS = 8 };

/* An arena, as shown to the user. */
struct arena {
	const struct arena_kind *kind;
	uint64_t address;     /* of its control structure, or 0 */
	uint64_t size;	      /* bytes that it holds from the system */
	uint64_t stated_size; /* what its own bookkeeping says, or 0 */
};

/*
 * Whether a program has its collector call functions that mark more than it finds by itself, as
 * what stacks hold that the program made.
 */
enum more_roots { MORE_ROOTS_NONE, MORE_ROOTS_UNKNOWN, MORE_ROOTS_CALLBACK };

/* What becomes of whole pages of free memory once they are asked back. */
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

struct allocator {
	const char *name;
	const char *summary;
	/* Find the heap. NULL in *ret and no error: the process has none of this allocator. */
	struct error *(*open)(const struct heap_context *context, struct heap **ret);
	/* Report all blocks. Damage goes to the findings; the rest is walked.
	 */
	struct error *(*walk)(struct heap *heap, arena_number first, struct block_sink *sink);
	/* The arenas, numbered from walk's first on; known after the walk. */
	size_t (*arena_count)(const struct heap *heap);
	struct arena (*arena)(const struct heap *heap, size_t number);
	/*
	 * Which of the first words of a used block are links that it left there, as a mask (see
	 * allocation_stale_links()). They are in no block, or in the 16 bytes below one: nobody
	 * else need ask. NULL: it leaves none.
	 */
	unsigned int (*stale_links)(const struct heap *heap, const struct allocation_index *index,
				    uint64_t start, const uint64_t words[4]);
	/*
	 * What it uses an address for: one of its bookkeeping, or the start of
	 * a free block, as what follows "it is".
	 * False if there is nothing to say.
	 */
	bool (*tell)(const struct heap *heap, uint64_t address, char *ret, size_t size);
	/* The kinds of its arenas and of its free memory, in the bill's order; no name ends each.
	 */
	const struct arena_kind *arena_kinds;
	const struct free_kind *free_kinds;
	/* Which of free_kinds the free block of the number-th arena is. NULL: always the first. */
	unsigned int (*free_kind)(const struct heap *heap, size_t number, allocation_id id,
				  struct block block);
	/*
	 * Find out what of that takes a pass over all; free_kind may be asked without. NULL: it is
	 * known from the walk.
	 */
	struct error *(*sort_free)(struct heap *heap, const struct allocation_index *index);
	/*
	 * Visit the pages that it gives back to the system when the program asks for that, as by
	 * malloc_trim(0), and those at the ends of its heaps that it keeps. They do not overlap.
	 * NULL: nothing is known.
	 */
	void (*spare)(const struct heap *heap, const struct allocation_index *index,
		      void (*visit)(void *data, const struct spare *spare), void *data);
	/*
	 * The memory that the block of its number-th arena takes, with its header. NULL: what its
	 * user has. kind: of a free one, else NULL.
	 */
	struct memory_range (*extent)(const struct heap *heap, size_t number, struct block block,
				      const struct free_kind *kind);
	/* Whether it uses the used block itself. NULL: none. */
	bool (*keeps)(const struct heap *heap, struct block block);
	/*
	 * The arena whose memory the bookkeeping at address is in, outside of its regions; or
	 * NO_ARENA. NULL: in none.
	 */
	size_t (*holds)(const struct heap *heap, uint64_t address);
	/*
	 * The number-th range that it reserved and does not use yet. False: no more. NULL: there
	 * are none.
	 */
	bool (*reserved)(const struct heap *heap, size_t number, struct memory_range *ret);
	/* Whether the module at [start, end) is what implements it. */
	bool (*lives_in)(const struct heap *heap, uint64_t start, uint64_t end);
	/* Of a collector; NULL: none. */
	enum more_roots (*more_roots)(const struct heap *heap);
	/*
	 * The memory that it got from the system, if others should know that it is not theirs:
	 * *ret_count ranges, in any order. NULL: no need.
	 */
	const struct memory_range *(*owned)(const struct heap *heap, size_t *ret_count);
	/*
	 * What it knows of the used block at start, as what follows "it is". NULL, or false:
	 * nothing.
	 */
	bool (*tell_used)(const struct heap *heap, uint64_t start, char *ret, size_t size);
	/* Whether the process ever used it. */
	bool (*is_used)(const struct heap *heap);
	void (*close)(struct heap *heap);
};

extern const struct allocator *const allocators[]; /* NULL at the end */

#endif
