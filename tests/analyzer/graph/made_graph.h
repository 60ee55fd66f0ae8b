/*
 * A graph that is made up of edges, in place of the one that is read from memory: what includes
 * this is linked without analyzer/graph/graph.c.
 */
#pragma once

#include "analyzer/graph/graph.h"

#include "tests/analyzer/drawing.h"

#include <stdlib.h>

/* Edges by source; those of source i are [begin[i], begin[i + 1]). */
struct graph {
	uint32_t *begin;
	allocation_id *targets;
	size_t edge_count;
};

struct edges graph_outgoing(const struct graph *graph, allocation_id id)
{
	return (struct edges){ graph->targets + graph->begin[id],
			       graph->begin[id + 1] - graph->begin[id] };
}

uint64_t graph_edge_count(const struct graph *graph)
{
	return graph->edge_count;
}

void graph_fetch_offset(const struct graph *graph, allocation_id id)
{
}

void graph_fetch_row(const struct graph *graph, allocation_id id)
{
}

/* Make a graph of count allocations; is_incoming: with reversed edges. */
static inline void graph_init(struct graph *graph, size_t count, const struct edge *edges,
			      size_t edge_count, bool is_incoming)
{
	uint32_t *begin = calloc(count + 2, sizeof(*begin));

	*graph = (struct graph){ begin, calloc(edge_count + 1, sizeof(*graph->targets)),
				 edge_count };
	assert_non_null(begin);
	assert_non_null(graph->targets);
	for (size_t i = 0; i < edge_count; i++)
		begin[(is_incoming ? edges[i].to : edges[i].from) + 2]++;
	for (size_t i = 2; i < count + 2; i++)
		begin[i] += begin[i - 1];
	for (size_t i = 0; i < edge_count; i++)
		if (is_incoming)
			graph->targets[begin[edges[i].to + 1]++] = edges[i].from;
		else
			graph->targets[begin[edges[i].from + 1]++] = edges[i].to;
}

static inline void graph_deinit(struct graph *graph)
{
	free(graph->begin);
	free(graph->targets);
	*graph = (struct graph){ 0 };
}

/* The struct itself belongs to who made it. */
void graph_destroy(struct graph *graph)
{
	graph_deinit(graph);
}
