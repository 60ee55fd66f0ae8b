/*
 * CPython's allocator for objects of up to 512 bytes, Objects/obmalloc.c, 2.7 to 3.14; the layouts
 *are in Include/internal/pycore_obmalloc.h from 3.12 on.
 *
 * It gets arenas from the system by mmap() and cuts them into pools; a pool has blocks of one size:
 *
 *	arena    | pool | pool | free pool | pool | not cut into pools yet |
 *	pool     | header, 48 bytes | block | free block | block | never handed out |
 *
 * Records of all arenas are in one array, which is from malloc(); a variable of the interpreter's
 * leads to it. A record that is in use has its arena's address:
 *
 *	address, next pool to cut, u32 free pools, u32 all pools, free pools, next and previous
 *arena
 *
 * In one that is not, the address is 0 and the next one is another such record, or none. A pool
 *names its arena's record, so that an array and its pools prove each other.
 */
#pragma once

#include "analyzer/heap/allocator.h"
#include "analyzer/image/view.h"

enum {
	POOL_HEADER = 48,
	RECORD = 48, /* of an arena */
	MOST_BLOCKS = 2048,
	FREE_WORDS = MOST_BLOCKS / 64,
};

/* Facts that differ between versions. */
struct pymalloc_geometry {
	uint32_t pool;	    /* bytes */
	uint32_t arena;	    /* bytes */
	uint32_t alignment; /* of blocks; sizes are its multiples */
};

/* 3.10 and later; 3.7 to 3.9; 2.7 to 3.6. */
enum { GEOMETRIES = 3 };
extern const struct pymalloc_geometry pymalloc_geometries[GEOMETRIES];

struct pymalloc_pool {
	uint32_t block;		   /* bytes of each block */
	uint32_t carved;	   /* blocks that were ever handed out */
	uint32_t capacity;	   /* blocks in all */
	uint64_t free[FREE_WORDS]; /* a bit for each of these that is free */
};

struct pymalloc_arena {
	uint64_t address;
	uint64_t next_pool; /* where the next pool is cut off */
	uint64_t record;
	uint32_t number; /* of the record */
	uint32_t free_pools;
	const struct pymalloc_geometry *geometry;
};

/*
 * Read the arena's pool at address: false if none with blocks in use is there. A thread may have
 * been about to take or free a block: the count of used ones may be off by one.
 */
bool pymalloc_read_pool(struct view *view, const struct pymalloc_arena *arena, uint64_t address,
			struct pymalloc_pool *ret);

struct pymalloc_heap {
	struct heap heap;
	struct heap_context context;
	ARRAY(struct pymalloc_arena) arenas; /* by address; they do not overlap */
	ARRAY(struct memory_range) tables;   /* of records */
	bool gave_up;			     /* the search was too long */
	const struct module *free_threaded;  /* an interpreter that has no arenas; or NULL */
};

/* Find the arrays of records, and the arenas that these name. */
struct error *pymalloc_search(struct pymalloc_heap *heap);

/* The first pool of the arena, and the end of all that it may be cut into. */
uint64_t pymalloc_first_pool(const struct pymalloc_arena *arena);
uint64_t pymalloc_pools_end(const struct pymalloc_arena *arena);
