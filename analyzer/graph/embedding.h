/*
 * Memory that belongs to a program that embeds a language as a library.
 *
 * Objects of the language wrap structures of the program, and so lead to much of it; but that is
 * held by the program's own static data, whether there are such objects or not.
 */
#pragma once

#include "analyzer/graph/graph.h"
#include "analyzer/graph/roots.h"

/* All borrowed. */
struct embedding_input {
	const struct image *image;
	const struct program *program;
	const struct runtimes *runtimes; /* whose objects are known */
	const struct roots *roots;
	const struct graph *graph;
	const struct allocation_index *index;
	struct memory_account *account;
	struct progress *progress;
};

/* True if the program embeds a language whose objects are known. */
bool embedding_is_there(const struct image *image, const struct program *program,
			const struct runtimes *runtimes);

/*
 * Find the allocations to which the executable's static data leads without an object of the
 * language. ret is all zeros, and stays so if the program embeds none.
 */
struct error *embedding_find(const struct embedding_input *input, struct bitmap *ret);

/*
 * True if the source does not belong to the program and the target does: the source does not hold
 * it.
 */
static inline bool embedding_is_void(const struct bitmap *own, allocation_id source,
				     allocation_id target)
{
	return own && bitmap_get(own, target) && !bitmap_get(own, source);
}
