/*
 * The contents of a block sink, shared by the sink and the index made of it.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/heap/block.h"
#include "analyzer/heap/damage.h"

/*
 * An allocation's place, in 8 bytes: its start in units of its region, from the region's start, and
 * its size in bytes. Larger sizes are on a list of their own.
 */
struct extent {
	uint32_t start;
	uint32_t size; /* or LARGE_SIZE */
};

static const uint32_t LARGE_SIZE = UINT32_MAX;

struct large_size {
	uint64_t id, size;
};

static inline uint64_t extent_start(const struct heap_region *region, const struct extent *extent)
{
	return region->start + ((uint64_t)extent->start << region->shift);
}

/* The bits of a trait are in a bitmap of its own. */
static inline unsigned int trait_mask(size_t number)
{
	return 1U << number;
}

struct block_sink {
	struct memory_account *account;
	unsigned int shift; /* of regions to come */
	ARRAY(struct heap_region) regions;
	struct memory extents; /* struct extent */
	size_t count;
	struct memory used, cached; /* one bit for each extent */
	/* One bit for each extent with the trait, up to the last one that has it. */
	struct memory traits[BLOCK_TRAITS];
	ARRAY(struct large_size) large;
	ARRAY(struct memory_range) claims;
	const struct memory_range *protected; /* see block_sink_protect() */
	size_t protected_count;
	ARRAY(uint64_t) held;		  /* starts of blocks */
	ARRAY(struct region_place) order; /* by start */
	size_t forgotten, forgotten_end;  /* extents that are read no more, in bytes, there yet */
	bool refuses;			  /* the blocks of the region that was to begin */
	/* Regions, blocks and claims that were left out, as only a damaged heap has such. */
	struct heap_damage refused;
};

struct region_place {
	uint64_t start;
	uint64_t reach; /* the highest end of this region and those before */
	size_t number;
};

/* Blocks that are added at once: at most so many, starts at most so far apart.
 */
enum { BLOCK_BATCH = 1024, BLOCK_BATCH_GAP = 1 << 20 };

/*
 * The address from which extents of a batch tell their starts, whose first block begins at start.
 * False: that one is for block_sink_add(), as a region may have to begin with it.
 */
bool block_sink_base(const struct block_sink *sink, uint64_t start, uint64_t *ret);

/*
 * Add a batch to the region begun last, none of LARGE_SIZE; count bits tell which are used, and the
 * others are free.
 */
struct error *block_sink_add_many(struct block_sink *sink, const struct extent *extents,
				  const uint64_t *used, size_t count);

/*
 * Add count blocks of size bytes to the region begun last, each where the one before ends, from
 * start on. Bits tell which are used and which are cached, if cached is not NULL; the others are
 * free.
 */
struct error *block_sink_add_row(struct block_sink *sink, uint64_t start, uint64_t size,
				 const uint64_t *used, const uint64_t *cached, size_t count);

/* Empty the sink but for its claims, and keep its memory. */
void block_sink_clear(struct block_sink *sink);

/*
 * Add the blocks of the piece to the region begun last, as if they had come one by one. The piece
 * has some, without traits, in one region that begins at or above the start of that one; it stays
 * as it is.
 */
struct error *block_sink_join(struct block_sink *sink, const struct block_sink *piece);

/*
 * The relation of a range to the regions, sorted by block_sink_order(): apart from all; within one,
 * where *ret is the last block that starts at or below the range, and may end before it; or across
 * their borders.
 */
enum sink_place { SINK_APART, SINK_AROUND, SINK_ACROSS };

enum sink_place block_sink_place(const struct block_sink *sink, uint64_t start, uint64_t end,
				 struct block *ret);

/* The number of the last block of the region that starts at or below address, or sink->count. */
size_t block_sink_number_below(const struct block_sink *sink, const struct heap_region *region,
			       uint64_t address);

/* The number-th block, which is in that region. */
struct block block_sink_get(const struct block_sink *sink, const struct heap_region *region,
			    size_t number);

/* Add a region of one sink, and its blocks, to another. */
struct error *block_sink_move_region(const struct block_sink *from, struct block_sink *to,
				     const struct heap_region *region);

/*
 * The blocks of the region, which are in another sink now, are read here no more: so a copy does
 * not stand beside all that it is made of. The sink may only be destroyed or replaced then.
 */
void block_sink_forget(struct block_sink *sink, const struct heap_region *region);

/* Give the sink the regions of the other one, which gets the old ones; claims and what is held
 * stay. */
void block_sink_replace(struct block_sink *sink, struct block_sink *by);
