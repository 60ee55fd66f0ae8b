/*
 * What a graph is made of, for the files that make one.
 */
#ifndef ANALYZER_GRAPH_GRAPH_PARTS_H
#define ANALYZER_GRAPH_GRAPH_PARTS_H

#include "analyzer/graph/graph.h"

/*
 * Rows are kept in shares of this many allocations. A share is what one thread
 * scans in one go; its rows follow each other in the thread's array, so that
 * nothing has to be joined or copied when all are done.
 */
enum { SHARE_BITS = 14, SHARE = 1 << SHARE_BITS };

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
	struct memory *arrays; /* allocation_id, one for each thread */
	unsigned int array_count;
	uint64_t edge_count;
};

/* A graph to be given rows and their edges, in so many arrays. */
struct error *graph_create_empty(size_t count, unsigned int arrays,
				 struct memory_account *account,
				 struct graph **ret);

#endif
