/*
 * Blocks: the pieces of memory that an allocator hands out or keeps free.
 *
 * A walker reports each of its regions in turn, and the blocks of a region by address. Regions may
 * come in any order. A claim is memory that is the allocator's own without being a block: arenas,
 * headers of mapped heaps. What is in a region or a claim is never a root.
 */
#pragma once

#include "analyzer/base/error.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/ranges.h"

#include <stdbool.h>
#include <stdint.h>

enum block_state {
	BLOCK_USED,
	BLOCK_FREE,
	BLOCK_CACHED, /* free, in a thread's cache */
};

/* Properties in which blocks differ from those of malloc(); bits of a mask. */
enum block_trait {
	/* Its contents are no pointers, and so refer to nothing. */
	TRAIT_POINTERLESS = 1 << 0,
	/* A collector frees it once nothing refers to it. */
	TRAIT_COLLECTABLE = 1 << 1,
	/* A collector scans it for pointers to blocks of its own, or could. */
	TRAIT_MANAGED = 1 << 2,
	/*
	 * Free, as its collector knows: nothing referred to it at the last collection. Its memory
	 * cannot be used again yet.
	 */
	TRAIT_DEAD = 1 << 3,
};

enum { BLOCK_TRAITS = 4 };

/* The bytes that the program may use: [start, start + size). */
struct block {
	uint64_t start;
	uint64_t size; /* bytes */
	enum block_state state;
	unsigned int traits; /* a mask of enum block_trait */
};

/*
 * True if a malloc might return that size for wanted bytes, which is no larger: rounded up to 16,
 * with headers of 16 bytes, up to 16 more to make the smallest block, and whole pages for large
 * ones.
 */
static inline bool rounds_like_malloc(uint64_t size, uint64_t wanted)
{
	return size - wanted < (wanted < 0x8000 ? 40 : 0x1020);
}

/* A number of allocations, and their bytes. */
struct set_total {
	uint64_t count, bytes;
};

static inline void set_total_add(struct set_total *total, struct set_total more)
{
	total->count += more.count;
	total->bytes += more.bytes;
}

/* The arena that regions and claims come from, shown to the user. */
typedef uint32_t arena_number;

/* The rank of an allocation in the order of addresses. */
typedef uint32_t allocation_id;
#define NO_ALLOCATION UINT32_MAX

/* Starts of allocations are multiples of 1 << shift bytes: of 16 unless their allocator says so. */
enum { LEAST_SHIFT = 3, USUAL_SHIFT = 4, MOST_SHIFT = 12 };

/* A stretch of memory of one arena, with count allocations from first on. */
struct heap_region {
	uint64_t start, end;
	uint32_t count;
	allocation_id first;
	arena_number arena;
	uint32_t shift;
};

struct block_sink;

/* A sink to walk heaps into, then to be made an index. */
struct error *block_sink_create(struct memory_account *account, struct block_sink **ret);
void block_sink_destroy(struct block_sink *sink);
DEFINE_CLEANUP(block_sink_destroy, struct block_sink *)

/* Blocks of later regions start at multiples of that: a power of two, at least 8; 16 at first. */
void block_sink_align(struct block_sink *sink, unsigned int alignment);

/*
 * A region [start, end) of an arena begins; its blocks follow. The dump may have any of it in a
 * wrong order or place: what does not fit is left out and counted, with all blocks of a region that
 * does not fit.
 */
struct error *block_sink_region(struct block_sink *sink, uint64_t start, uint64_t end,
				arena_number arena);

/* As block_sink_region(), but a stretch behind the arena's last region extends that. */
struct error *block_sink_stretch(struct block_sink *sink, uint64_t start, uint64_t end,
				 arena_number arena);

/* A block of that region, behind all blocks that it has so far. */
struct error *block_sink_add(struct block_sink *sink, struct block block);

/* Shorten the region begun last. */
void block_sink_cut(struct block_sink *sink, uint64_t end);

/* The number of blocks so far. */
size_t block_sink_count(const struct block_sink *sink);

/* Change the state of the block that starts at address; false if there is none. */
bool block_sink_restate(struct block_sink *sink, uint64_t address, enum block_state state);

/* Sort the regions, so that many blocks are found quickly by their start; until one is added. */
struct error *block_sink_order(struct block_sink *sink);

/* The block that starts there; false if none does. */
bool block_sink_find(const struct block_sink *sink, uint64_t start, struct block *ret);

/* The allocator was working on the block at start for a thread. */
struct error *block_sink_hold(struct block_sink *sink, uint64_t start);

/* The block that starts last below address; false if there is none. */
bool block_sink_below(const struct block_sink *sink, uint64_t address, struct block *ret);

/*
 * Call visit for the used blocks below 4 GB, from the first-th block on, until it returns false. It
 * may restate blocks.
 */
void block_sink_visit_used(struct block_sink *sink, size_t first,
			   bool (*visit)(void *data, struct block block), void *data);

/* [start, end) is bookkeeping of the allocator, but for what block_sink_protect() was told of. */
struct error *block_sink_claim(struct block_sink *sink, uint64_t start, uint64_t end);

/*
 * These ranges, by address and apart, are known to be no allocator's: claims and regions that
 * cover some leave it out, whatever their allocator takes its neighbours for. Only a block may
 * hold it, as memory of malloc() that the program made a thread's stack of. They are borrowed.
 */
void block_sink_protect(struct block_sink *sink, const struct memory_range *ranges, size_t count);

/* Claim the number-th region, as all are once all blocks are known. */
struct error *block_sink_claim_region(struct block_sink *sink, size_t number);
