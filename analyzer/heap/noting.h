/*
 * Calls that allocated, as the program itself noted them in its memory: a debugging allocator, the
 * sampler of a profiler, a language that traces allocations. An allocator or a runtime that has
 * such notes defines a struct noting.
 */
#pragma once

#include "analyzer/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One noted block, or several with the same calls. */
struct noted_blocks {
	uint64_t start; /* of the block; 0: of several */
	uint64_t count; /* of blocks */
	uint64_t bytes; /* as the program counts them: mostly, that it asked for */
	uint64_t calls; /* equal ones are the same calls */
};

/* An error ends the visit. */
typedef struct error *noted_visitor(void *data, const struct noted_blocks *note);

/* A call in a language. Texts are untrusted and borrowed; NULL or 0: not known. */
struct noted_place {
	const char *function, *path;
	uint64_t line;
};

struct noting {
	const char *name; /* of what notes them, "tracemalloc" */
	bool is_sampled;  /* only some blocks are noted */
	bool is_outside;  /* calls within its library are left out already */
	/* Visit all. owner is the heap or object space; nothing is visited if it has no notes. */
	struct error *(*visit)(void *owner, noted_visitor *visit, void *data);
	/* Optional: the calls of the used block at start; 0: they are not known. */
	uint64_t (*calls_of)(void *owner, uint64_t start);
	/*
	 * One of the two: read at most so many return addresses of the calls; or visit the places
	 * of calls in a language. The innermost is first.
	 */
	size_t (*read_calls)(void *owner, uint64_t calls, uint64_t *ret, size_t most);
	void (*visit_places)(void *owner, uint64_t calls,
			     void (*visit)(void *data, const struct noted_place *place),
			     void *data);
};
