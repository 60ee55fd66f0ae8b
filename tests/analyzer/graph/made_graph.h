/*
 * A graph that is made up of edges, in place of the one that is read from memory: what includes
 * this is linked without analyzer/graph/graph.c.
 */
#ifndef TESTS_ANALYZER_GRAPH_MADE_GRAPH_H
#define TESTS_ANALYZER_GRAPH_MADE_GRAPH_H

#include "analyzer/graph/graph.h"

#include "tests/assertions.h"

#include <stdlib.h>

struct edge {
	allocation_id from, to;
};

/* Edges by source; those of source i are [begin[i], begin[i + 1]). */
struct graph {
	uint32_t *begin;
	allocation_id *targets;
};

struct edges graph_outgoing(const struct graph *graph, allocation_id id)
{
	return (struct edges){ graph->targets + graph->begin[id],
			       graph->begin[id + 1] - graph->begin[id] };
}

void graph_fetch_offset(const struct graph *graph, allocation_id id)
{
}

void graph_fetch_row(const struct graph *graph, allocation_id id)
{
}

/* Of count allocations; the edges are sorted by source. */
static inline void graph_init(struct graph *graph, size_t count, const struct edge *edges,
			      size_t edge_count)
{
	size_t next = 0;

	graph->begin = calloc(count + 1, sizeof(*graph->begin));
	graph->targets = calloc(edge_count + 1, sizeof(*graph->targets));
	assert_non_null(graph->begin);
	assert_non_null(graph->targets);
	for (size_t i = 0; i < count; i++) {
		graph->begin[i] = (uint32_t)next;
		for (; next < edge_count && edges[next].from == i; next++)
			graph->targets[next] = edges[next].to;
	}
	graph->begin[count] = (uint32_t)next;
	assert_int_equal(next, edge_count);
}

static inline void graph_deinit(struct graph *graph)
{
	free(graph->begin);
	free(graph->targets);
}

#endif
