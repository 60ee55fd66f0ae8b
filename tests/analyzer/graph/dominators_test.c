#include "analyzer/graph/dominators.h"

#include "tests/analyzer/graph/made_graph.h"
#include "tests/analyzer/heap/made_index.h"

#include <string.h>

static int compare_edges(const void *a, const void *b)
{
	const struct edge *left = a, *right = b;

	if (left->from != right->from)
		return left->from < right->from ? -1 : 1;
	return (left->to > right->to) - (left->to < right->to);
}

struct world {
	struct memory_account account;
	struct progress progress;
	struct graph graph, incoming;
	struct allocation_index *index;
	struct bitmap entries, anchored, leaked;
	struct dominators *dominators;
};

static void sort_edges(struct edge *edges, size_t count)
{
	if (count > 0)
		qsort(edges, count, sizeof(*edges), compare_edges);
}

/* Of the blocks, those in is_free are; NULL: none. Edges are reordered. */
static void world_init(struct world *world, size_t count, const bool *is_free, struct edge *edges,
		       size_t edge_count)
{
	*world = (struct world){ 0 };
	world->index = index_make(&world->account, count, is_free);
	sort_edges(edges, edge_count);
	graph_init(&world->graph, count, edges, edge_count);
	for (size_t i = 0; i < edge_count; i++)
		edges[i] = (struct edge){ edges[i].to, edges[i].from };
	sort_edges(edges, edge_count);
	graph_init(&world->incoming, count, edges, edge_count);
	assert_no_error(bitmap_init(&world->entries, count, &world->account));
	assert_no_error(bitmap_init(&world->anchored, count, &world->account));
	assert_no_error(bitmap_init(&world->leaked, count, &world->account));
	bitmap_fill(&world->anchored);
}

static struct error *world_find(struct world *world)
{
	const struct dominators_input input = {
		.graph = &world->graph,
		.incoming = &world->incoming,
		.index = world->index,
		.entries = &world->entries,
		.anchored = &world->anchored,
		.leaked = &world->leaked,
		.account = &world->account,
		.progress = &world->progress,
	};

	return dominators_create(&input, &world->dominators);
}

static void world_deinit(struct world *world)
{
	if (world->dominators)
		dominators_destroy(world->dominators);
	allocation_index_destroy(world->index);
	bitmap_deinit(&world->entries);
	bitmap_deinit(&world->anchored);
	bitmap_deinit(&world->leaked);
	graph_deinit(&world->graph);
	graph_deinit(&world->incoming);
	assert_int_equal(world->account.used, 0);
}
DEFINE_DEINIT(world_deinit, struct world)

static bool dominates(const struct world *world, allocation_id holder, allocation_id id)
{
	size_t above, below;

	assert_true(dominators_position(world->dominators, holder, &above));
	assert_true(dominators_position(world->dominators, id, &below));
	return above <= below && below < dominators_end(world->dominators, above);
}

static uint64_t retained(const struct world *world, allocation_id id)
{
	return dominators_retained(world->dominators, id);
}

static void test_what_two_ways_lead_to_is_retained_where_they_part(void **state)
{
	_cleanup_(world_deinit) struct world world;
	struct edge edges[] = { { 0, 1 }, { 0, 2 }, { 1, 3 }, { 2, 3 }, { 3, 4 }, { 4, 0 } };

	world_init(&world, 5, NULL, edges, 6);
	bitmap_set(&world.entries, 0);
	assert_no_error(world_find(&world));
	assert_int_equal(retained(&world, 0), 8 + 9 + 10 + 11 + 12);
	assert_int_equal(retained(&world, 1), 9);
	assert_int_equal(retained(&world, 2), 10);
	assert_int_equal(retained(&world, 3), 11 + 12);
	assert_int_equal(retained(&world, 4), 12);
	assert_true(dominates(&world, 0, 4));
	assert_false(dominates(&world, 1, 3));
	assert_false(dominates(&world, 4, 3));
}

static void test_what_an_entry_is_no_other_retains(void **state)
{
	_cleanup_(world_deinit) struct world world;
	struct edge edges[] = { { 0, 1 }, { 1, 2 } };

	world_init(&world, 3, NULL, edges, 2);
	bitmap_set(&world.entries, 0);
	bitmap_set(&world.entries, 2);
	assert_no_error(world_find(&world));
	assert_int_equal(retained(&world, 0), 8 + 9);
	assert_int_equal(retained(&world, 1), 9);
	assert_int_equal(retained(&world, 2), 10);
}

/*
 *	anchored   0 ─→ 1 ─→ 2
 *	garbage    3 ─→ 4 ─→ 5    to 1 as well
 *	leaked     6 ─→ 7         to 1, 2, 4 and 5 as well
 */
static void test_what_is_lost_holds_nothing_that_is_not(void **state)
{
	_cleanup_(world_deinit) struct world world;
	struct edge edges[] = { { 0, 1 }, { 1, 2 }, { 3, 4 }, { 4, 5 }, { 3, 1 },
				{ 6, 7 }, { 6, 1 }, { 6, 2 }, { 7, 4 }, { 7, 5 } };

	world_init(&world, 8, NULL, edges, 10);
	for (size_t i = 3; i < 8; i++)
		bitmap_clear(&world.anchored, i);
	bitmap_set(&world.leaked, 6);
	bitmap_set(&world.leaked, 7);
	bitmap_set(&world.entries, 0);
	bitmap_set(&world.entries, 3);
	bitmap_set(&world.entries, 6);
	assert_no_error(world_find(&world));
	assert_int_equal(retained(&world, 0), 8 + 9 + 10);
	assert_int_equal(retained(&world, 1), 9 + 10);
	assert_int_equal(retained(&world, 3), 11 + 12 + 13);
	assert_int_equal(retained(&world, 4), 12 + 13);
	assert_int_equal(retained(&world, 6), 14 + 15);
	assert_int_equal(retained(&world, 7), 15);
}

static void test_free_allocations_take_no_part(void **state)
{
	_cleanup_(world_deinit) struct world world;
	const bool is_free[] = { false, true, false };
	struct edge edges[] = { { 0, 1 }, { 0, 2 } };
	size_t position;

	world_init(&world, 3, is_free, edges, 2);
	bitmap_set(&world.entries, 0);
	assert_no_error(world_find(&world));
	assert_int_equal(dominators_count(world.dominators), 2);
	assert_false(dominators_position(world.dominators, 1, &position));
	assert_int_equal(retained(&world, 1), 0);
	assert_int_equal(retained(&world, 0), 8 + 10);
}

static void test_what_no_entry_leads_to_is_one(void **state)
{
	_cleanup_(world_deinit) struct world world;
	struct edge edges[] = { { 1, 2 }, { 2, 1 }, { 2, 0 } };

	world_init(&world, 3, NULL, edges, 3);
	bitmap_set(&world.entries, 0);
	assert_no_error(world_find(&world));
	assert_int_equal(retained(&world, 0), 8);
	assert_int_equal(retained(&world, 1), 9 + 10);
	assert_int_equal(retained(&world, 2), 10);
}

static void test_a_heap_without_used_allocations_has_an_empty_tree(void **state)
{
	_cleanup_(world_deinit) struct world world;
	const bool is_free[] = { true };

	world_init(&world, 1, is_free, NULL, 0);
	assert_no_error(world_find(&world));
	assert_int_equal(dominators_count(world.dominators), 0);
}

/*
 * A list of half of them, its last one an array of the other half, to which an array that the
 * list's head holds refers as well. To climb the list for each of these would take hours.
 */
static void test_long_lists_cost_little(void **state)
{
	enum { HALF = 200000, COUNT = 2 * HALF + 1, EDGES = 3 * HALF };
	_cleanup_(world_deinit) struct world world;
	struct edge *edges = calloc(EDGES, sizeof(*edges));
	size_t count = 0;

	for (uint32_t i = 0; i + 1 < HALF; i++)
		edges[count++] = (struct edge){ i, i + 1 };
	for (uint32_t i = 0; i < HALF; i++) {
		edges[count++] = (struct edge){ HALF - 1, HALF + i };
		edges[count++] = (struct edge){ COUNT - 1, HALF + i };
	}
	edges[count++] = (struct edge){ 0, COUNT - 1 };
	world_init(&world, COUNT, NULL, edges, count);
	bitmap_set(&world.entries, 0);
	assert_no_error(world_find(&world));
	assert_int_equal(dominators_end(world.dominators, 0), COUNT);
	assert_int_equal(retained(&world, HALF), size_of(HALF));
	assert_int_equal(retained(&world, HALF - 1), size_of(HALF - 1));
	assert_int_equal(retained(&world, HALF - 2), size_of(HALF - 2) + size_of(HALF - 1));
	free(edges);
}

enum { MOST = 24 };

/* Mark what is reached from the entries if one of the blocks is gone. */
static void reach(const struct world *world, allocation_id from, allocation_id gone, bool *reached)
{
	struct edges edges = graph_outgoing(&world->graph, from);

	if (from == gone || reached[from] || allocation_state(world->index, from) != BLOCK_USED)
		return;
	reached[from] = true;
	for (size_t i = 0; i < edges.count; i++)
		reach(world, edges.targets[i], gone, reached);
}

/* Whether it refers to nothing, and one only refers to it. */
static bool is_leaf(const struct world *world, allocation_id id)
{
	return graph_outgoing(&world->graph, id).count == 0 &&
	       graph_outgoing(&world->incoming, id).count == 1;
}

/* What no entry leads to becomes one, by address, but no leaf of another. */
static void complete_entries(struct world *world, size_t count)
{
	bool reached[MOST] = { false };

	bitmap_for_each(id, &world->entries)
		reach(world, (allocation_id)id, NO_ALLOCATION, reached);
	bitmap_for_each(id, allocation_used(world->index)) {
		if (reached[id] || is_leaf(world, (allocation_id)id))
			continue;
		bitmap_set(&world->entries, id);
		reach(world, (allocation_id)id, NO_ALLOCATION, reached);
	}
}

/* Take each block away, and look what is not reached any more. */
static void check_all(const struct world *world, size_t count)
{
	bitmap_for_each(gone, allocation_used(world->index)) {
		bool reached[MOST] = { false };
		uint64_t bytes = 0;

		bitmap_for_each(id, &world->entries)
			reach(world, (allocation_id)id, (allocation_id)gone, reached);
		bitmap_for_each(id, allocation_used(world->index)) {
			assert_int_equal(dominates(world, (allocation_id)gone, (allocation_id)id),
					 !reached[id]);
			if (!reached[id])
				bytes += size_of(id);
		}
		assert_int_equal(retained(world, (allocation_id)gone), bytes);
	}
}

static void check_random(unsigned int seed)
{
	_cleanup_(world_deinit) struct world world;
	bool is_free[MOST];
	struct edge edges[3 * MOST];
	size_t count, edge_count = 0, density;

	srand(seed);
	count = 1 + (size_t)rand() % MOST;
	density = 1 + (size_t)rand() % 3;
	for (size_t i = 0; i < count; i++)
		is_free[i] = rand() % 8 == 0;
	for (size_t i = 0; i < density * count; i++) {
		struct edge edge = { (uint32_t)((size_t)rand() % count),
				     (uint32_t)((size_t)rand() % count) };

		if (!is_free[edge.from] && edge.from != edge.to)
			edges[edge_count++] = edge;
	}
	world_init(&world, count, is_free, edges, edge_count);
	for (size_t i = 0; i < count; i++)
		if (!is_free[i] && rand() % 6 == 0)
			bitmap_set(&world.entries, i);
	assert_no_error(world_find(&world));
	complete_entries(&world, count);
	check_all(&world, count);
}

static void test_random_heaps_retain_what_is_lost_without_each(void **state)
{
	for (unsigned int seed = 0; seed < 8000; seed++)
		check_random(seed);
}

static void test_an_interrupt_ends_the_search(void **state)
{
	enum { COUNT = 1 << 17 };
	_cleanup_(world_deinit) struct world world;

	world_init(&world, COUNT, NULL, NULL, 0);
	atomic_store(&world.progress.interrupted, true);
	assert_error(world_find(&world), ERROR_INTERRUPTED, "interrupted");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_two_ways_lead_to_is_retained_where_they_part),
		cmocka_unit_test(test_what_an_entry_is_no_other_retains),
		cmocka_unit_test(test_what_is_lost_holds_nothing_that_is_not),
		cmocka_unit_test(test_free_allocations_take_no_part),
		cmocka_unit_test(test_what_no_entry_leads_to_is_one),
		cmocka_unit_test(test_a_heap_without_used_allocations_has_an_empty_tree),
		cmocka_unit_test(test_long_lists_cost_little),
		cmocka_unit_test(test_random_heaps_retain_what_is_lost_without_each),
		cmocka_unit_test(test_an_interrupt_ends_the_search),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
