/*
 * Leak roots: where to look first among the leaked allocations.
 *
 * The leaked part of the graph, its strongly connected components taken as one, has components that
 * no other refers to. Each is a leak root, also a ring. It owns what can be reached from it alone;
 * what several leak roots reach is shared, and counted once.
 */
#ifndef ANALYZER_GRAPH_LEAKS_H
#define ANALYZER_GRAPH_LEAKS_H

#include "analyzer/base/side_file.h"
#include "analyzer/graph/graph.h"

struct leak_root {
	allocation_id id;     /* the member with the lowest address */
	uint32_t members;     /* 1, or the allocations of a ring */
	uint64_t owned_count; /* allocations, the members included */
	uint64_t owned_bytes;
};

/* By address of their lowest member; what several of them reach is shared. */
struct leaks {
	struct leak_root *roots;
	size_t count;
	uint64_t shared_count, shared_bytes;
};

/* leaked: a set of used allocations; no others that are lost refer to them. */
struct error *leaks_create(const struct graph *graph, const struct allocation_index *index,
			   const struct bitmap *leaked, struct memory_account *account,
			   struct progress *progress, struct leaks **ret);
void leaks_destroy(struct leaks *leaks);
DEFINE_CLEANUP(leaks_destroy, struct leaks *)

/* The leak root whose lowest member id is, or NULL. */
const struct leak_root *leak_root_find(const struct leaks *leaks, allocation_id id);

struct error *leaks_save(const struct leaks *leaks, struct side_writer *writer);
struct error *leaks_load(struct side_file *file, const struct bitmap *leaked, struct leaks **ret);

#endif
