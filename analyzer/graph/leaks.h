/*
 * Leak roots: where to look first among the leaked allocations.
 *
 * The leaked part of the graph, its strongly connected components taken as one, has components that
 * no other refers to. Each is a leak root, also a ring. It owns what can be reached from it alone;
 * what several leak roots reach is shared, and counted once.
 */
#pragma once

#include "analyzer/base/side_file.h"
#include "analyzer/graph/graph.h"
#include "analyzer/runtimes/runtimes.h"

struct leak_root {
	allocation_id id;     /* the member that names it */
	uint32_t members;     /* 1, or the allocations of a ring */
	uint64_t owned_count; /* allocations, the members included */
	uint64_t owned_bytes;
};

/*
 * Sorted by address; allocations that several roots reach are shared. A cycle is named by an object
 * of a class that the program made, else by any object, else by any member; among several, by the
 * one with the lowest address.
 */
struct leaks {
	struct leak_root *roots;
	size_t count;
	uint64_t shared_count, shared_bytes;
};

/* leaked: a set of used allocations; no others that are lost refer to them. runtimes may be NULL.
 */
struct error *leaks_create(const struct graph *graph, const struct allocation_index *index,
			   const struct runtimes *runtimes, const struct bitmap *leaked,
			   struct memory_account *account, struct progress *progress,
			   struct leaks **ret);
void leaks_destroy(struct leaks *leaks);
DEFINE_CLEANUP(leaks_destroy, struct leaks *)

/* The leak root that id names, or NULL. */
const struct leak_root *leak_root_find(const struct leaks *leaks, allocation_id id);

struct error *leaks_save(const struct leaks *leaks, struct side_writer *writer);
struct error *leaks_load(struct side_file *file, const struct bitmap *leaked, struct leaks **ret);
