/*
 * Heaps that live within blocks of other heaps, as pools have them.
 *
 * The outer block gives way to the inner regions in the index, so that an address leads to the
 * innermost block and no byte counts twice:
 *
 *	outer region   | a | outer block ..................... | b |
 *	inner regions              | c | d |   | e | f |
 *
 *	index          | a | outer | c | d |   | e | f |       | b |
 *
 * What lies before the first inner region remains of the outer block; if nothing does, the block is
 * left out. What lies between and behind inner regions is in no heap, and so a root, but counts for
 * the outer block in the bill.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/heap/index.h"

/* A used block that has another heap in it. */
struct outer_block {
	uint64_t start, end;	  /* up to where another block may begin */
	arena_number arena;	  /* of the outer heap */
	arena_number inner_arena; /* of the first region in it */
};

struct nesting {
	ARRAY(struct outer_block) blocks; /* by address */
};

/*
 * Cut regions of the sink around those that lie in their used blocks; what does not fit wholly into
 * one block stays as it is. firsts has the first arena of each of the heaps. On error, ret_nesting
 * may have blocks, and the sink may only be destroyed.
 */
struct error *nesting_resolve(struct block_sink *sink, const arena_number *firsts, size_t heaps,
			      struct nesting *ret_nesting);

/* The block that address is in, or NULL. */
const struct outer_block *nesting_find(const struct nesting *nesting, uint64_t address);
