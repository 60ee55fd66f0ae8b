/*
 * The memory that allocators got from the system, so that one does not take another's for its own:
 * several may use sbrk(), and mappings are merged.
 */
#ifndef ANALYZER_HEAP_OWNED_H
#define ANALYZER_HEAP_OWNED_H

#include "analyzer/base/array.h"
#include "analyzer/heap/index.h"

struct owned_memory {
	ARRAY(struct memory_range) ranges; /* by address, apart */
};

/* Add count ranges, in any order. */
struct error *owned_memory_add(struct owned_memory *owned, const struct memory_range *ranges,
			       size_t count);

/* The first range that ends above address, or NULL. */
const struct memory_range *owned_memory_find(const struct owned_memory *owned, uint64_t address);

#endif
