/*
 * The references between allocations.
 *
 * One pass over the used allocations in order of address turns every aligned word into an edge to
 * an allocation, used or free, or into nothing. What is pointerless has no edges, and a reference
 * of an allocation to itself is none. The edges of an allocation are a row of ids in the order of
 * the words; the same target may stand in it more than once, though not twice in a row.
 */
#pragma once

#include "analyzer/base/progress.h"
#include "analyzer/base/side_file.h"
#include "analyzer/heap/index.h"
#include "analyzer/image/image.h"

struct graph;
struct runtimes;

/* A row of allocations; borrowed from the graph. */
struct edges {
	const allocation_id *targets;
	size_t count;
};

/* Links of the runtimes' own are no references; runtimes may be NULL. */
struct error *graph_create(const struct image *image, const struct allocation_index *index,
			   const struct runtimes *runtimes, struct memory_account *account,
			   struct progress *progress, struct graph **ret);
void graph_destroy(struct graph *graph);
DEFINE_CLEANUP(graph_destroy, struct graph *)

struct error *graph_save(const struct graph *graph, struct side_writer *writer);

/* It is an error if anything but what is used refers to anything. */
struct error *graph_load(struct side_file *file, const struct bitmap *used,
			 struct memory_account *account, struct graph **ret);

/* How many references there are, repeated ones included. */
uint64_t graph_edge_count(const struct graph *graph);

/* The targets of the allocation; none if it is free or pointerless. */
struct edges graph_outgoing(const struct graph *graph, allocation_id id);

/*
 * Prefetch what graph_outgoing() will need: first the position of the row, and some steps later the
 * row itself.
 */
void graph_fetch_offset(const struct graph *graph, allocation_id id);
void graph_fetch_row(const struct graph *graph, allocation_id id);

/* Make reached the set of what those in from lead to, themselves included, free ones as well. */
struct error *graph_mark(const struct graph *graph, const struct bitmap *from,
			 struct bitmap *reached, struct memory_account *account,
			 struct progress *progress);

/* Like graph_mark(), following only allocations in within. from is a subset of it. */
struct error *graph_mark_within(const struct graph *graph, const struct bitmap *within,
				const struct bitmap *from, struct bitmap *reached,
				struct memory_account *account, struct progress *progress);

/*
 * The graph with all edges reversed: its outgoing edges are incoming ones, including those of free
 * allocations; each row is in order of address, without repeats.
 */
struct error *graph_transpose(const struct graph *graph, struct memory_account *account,
			      struct progress *progress, struct graph **ret);

/* Like graph_transpose(), for the edges from sources to a few targets. */
struct error *graph_transpose_to(const struct graph *graph, const struct bitmap *sources,
				 const struct bitmap *targets, struct memory_account *account,
				 struct progress *progress, struct graph **ret);

/*
 * A copy of the graph with other edges: narrow gets a copy of each row that is not empty, moves the
 * edges to keep to its front, may add so many more behind them, and returns their number.
 */
struct error *graph_narrow(const struct graph *graph, size_t more,
			   size_t (*narrow)(void *data, allocation_id source,
					    allocation_id *targets, size_t count),
			   void *data, struct memory_account *account, struct progress *progress,
			   struct graph **ret);
