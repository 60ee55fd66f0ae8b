/*
 * What is behind a block sink: shared by the sink and the index made of it.
 */
#ifndef ANALYZER_HEAP_SINK_H
#define ANALYZER_HEAP_SINK_H

#include "analyzer/heap/index.h"

/*
 * Where an allocation is, in 8 bytes: its start in units of 16 bytes from its
 * region's, and its size in bytes. A larger size is kept on a list of its own.
 */
struct extent {
	uint32_t start;
	uint32_t size; /* or LARGE_SIZE */
};

static const uint32_t LARGE_SIZE = UINT32_MAX;

struct large_size {
	allocation_id id;
	uint64_t size;
};

struct block_sink {
	struct memory_account *account;
	struct memory regions; /* struct heap_region */
	size_t region_count;
	struct memory extents; /* struct extent */
	size_t count;
	struct memory used, cached; /* one bit for each extent */
	struct memory large;	    /* struct large_size */
	size_t large_count;
	struct memory claims; /* struct memory_range */
	size_t claim_count;
	struct memory held; /* uint64_t: starts of blocks */
	size_t held_count;
};

#endif
