/*
 * Allocations and the references among them, made up of edges or drawn as text: for what reads
 * neither memory nor a program.
 */
#pragma once

#include "tests/analyzer/graph/made_graph.h"
#include "tests/analyzer/heap/made_index.h"

struct world {
	struct memory_account account;
	struct progress progress;
	struct graph graph, incoming;
	struct allocation_index *index;
	struct bitmap roots;   /* targets of roots */
	struct bitmap members; /* all, at first */
	struct bitmap leaked;  /* none, at first */
};

/* Make a world of allocations, of which those in is_free are free; NULL: none is. */
static inline void world_make(struct world *world, size_t count, const bool *is_free,
			      const struct edge *edges, size_t edge_count)
{
	*world = (struct world){ .index = NULL };
	world->index = index_make(&world->account, count, is_free);
	graph_init(&world->graph, count, edges, edge_count, false);
	graph_init(&world->incoming, count, edges, edge_count, true);
	assert_no_error(bitmap_init(&world->roots, count, &world->account));
	assert_no_error(bitmap_init(&world->members, count, &world->account));
	assert_no_error(bitmap_init(&world->leaked, count, &world->account));
	bitmap_fill(&world->members);
}

static inline void world_draw(struct world *world, const char *text)
{
	struct drawing drawing = draw(text);

	world_make(world, drawing.count, drawing.is_free, drawing.edges, drawing.edge_count);
	if (drawing.count > 0)
		world->roots.words[0] = drawing.roots;
}

/* Call it last: no memory may stay accounted for. */
static inline void world_deinit(struct world *world)
{
	allocation_index_destroy(world->index);
	graph_deinit(&world->graph);
	graph_deinit(&world->incoming);
	bitmap_deinit(&world->roots);
	bitmap_deinit(&world->members);
	bitmap_deinit(&world->leaked);
	assert_int_equal(world->account.used, 0);
}
DEFINE_DEINIT(world_deinit, struct world)
