/*
 * Pools: memory that a program frees as a whole, and whose first block begins with a header that
 * tells them. Each block of a pool is an object of the class that the pool has its name by.
 */
#pragma once

#include "analyzer/runtimes/runtime.h"

typedef struct error *pool_visitor(struct object_space *space, allocation_id id, const void *header,
				   const void *data);

/* Pools of one kind, in programs with words of 8 bytes. */
struct pool_kind {
	size_t offset, size; /* of the header, in the block; 16 words at most */
	/* True if the allocation begins a pool with that header. */
	bool (*is_pool)(const struct object_space *space, allocation_id id, const void *header);
	/* Add its blocks, by object_classes_set(); space->steps is a budget against damaged lists.
	 */
	pool_visitor *add;
};

struct error *pools_visit(struct object_space *space, const struct pool_kind *kind,
			  pool_visitor *visit, const void *data);

/* Find the objects of the space: for the slot find_objects. */
struct error *pools_find(struct object_space *space, const struct pool_kind *kind);
