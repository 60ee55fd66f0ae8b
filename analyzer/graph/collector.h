/*
 * The allocations that a garbage collector considers reachable, which may be fewer than the program
 * can reach.
 *
 * It starts from the writable data of modules, from the used parts of stacks, from registers and
 * from the objects that it never collects, and goes on only over objects of its own. Blocks of
 * malloc() are nothing to it, nor is any other memory: anonymous mappings, and the thread-local
 * variables of the main thread, which the loader allocates. What only such memory leads to may be
 * freed while it is in use.
 *
 * Where a collector looks at less than is assumed here, as one that is set to ignore pointers
 * into the middle of an object, or that does not know of a thread, more is at risk than is found.
 * It never is less, unless the program shows the collector memory by a callback.
 */
#pragma once

#include "analyzer/graph/graph.h"
#include "analyzer/graph/roots.h"

struct collector_input {
	const struct program *program;
	const struct allocation_index *index;
	const struct roots *roots;
	const struct graph *graph;
	struct memory_account *account;
	struct progress *progress;
};

/* Mark in ret, which is not initialized, what it would not free. */
struct error *collector_mark(const struct collector_input *input, struct bitmap *ret);
