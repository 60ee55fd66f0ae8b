/*
 * What a graph is made of, for the files that make one.
 */
#ifndef ANALYZER_GRAPH_GRAPH_PARTS_H
#define ANALYZER_GRAPH_GRAPH_PARTS_H

#include "analyzer/graph/graph.h"
#include "analyzer/heap/turns.h"

/*
 * Rows are kept by shares of allocations. Most shares are what one thread scans
 * in one go: their rows follow each other in the thread's array, so that
 * nothing has to be joined or copied when all are done. Shares that are cut are
 * in an array of their own.
 */
struct share {
	const allocation_id *targets; /* NULL if it has none */
	uint32_t count;
	unsigned int array; /* that targets is in */
	size_t begin;	    /* where there */
};

struct graph {
	size_t count; /* allocations */
	struct share *shares;
	size_t share_count;
	struct memory
		offsets; /* uint32_t by id: where in the share it begins */
	struct memory *arrays; /* allocation_id */
	unsigned int array_count;
	uint64_t edge_count;
};

/* A graph to be given rows and their edges, in so many arrays. */
struct error *graph_create_empty(size_t count, unsigned int arrays,
				 struct memory_account *account,
				 struct graph **ret);

/* The same, with room for the rows' beginnings. */
struct error *graph_create_rows(size_t count, unsigned int arrays,
				struct memory_account *account,
				struct graph **ret);

/* Make the lengths of a share's rows into their beginnings. */
struct error *graph_lay_out_share(struct graph *graph, size_t number);

/*
 * Now that the arrays no longer move, and have so many edges, let the shares
 * point into them.
 */
struct error *graph_place_shares(struct graph *graph, const size_t *counts);

#endif
