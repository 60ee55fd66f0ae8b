#include "analyzer/graph/leaks.h"

#include "tests/analyzer/graph/made_graph.h"
#include "tests/analyzer/heap/made_index.h"
#include "tests/random.h"

#include <string.h>

struct world {
	struct memory_account account;
	struct progress progress;
	struct graph graph;
	struct allocation_index *index;
	struct bitmap leaked; /* all, at first */
	struct leaks *leaks;
};

/* Edges are sorted by source. */
static void world_init(struct world *world, size_t count, const struct edge *edges,
		       size_t edge_count)
{
	*world = (struct world){ 0 };
	graph_init(&world->graph, count, edges, edge_count);
	world->index = index_make(&world->account, count, NULL);
	assert_no_error(bitmap_init(&world->leaked, count, &world->account));
	bitmap_fill(&world->leaked);
}

static void world_deinit(struct world *world)
{
	if (world->leaks)
		leaks_destroy(world->leaks);
	allocation_index_destroy(world->index);
	bitmap_deinit(&world->leaked);
	graph_deinit(&world->graph);
	assert_int_equal(world->account.used, 0);
}
DEFINE_DEINIT(world_deinit, struct world)

static void find_leaks(struct world *world)
{
	assert_no_error(leaks_create(&world->graph, world->index, &world->leaked, &world->account,
				     &world->progress, &world->leaks));
}

/* Bytes of the allocations from the first to the last. */
static uint64_t bytes_of(uint64_t first, uint64_t last)
{
	uint64_t bytes = 0;

	for (uint64_t id = first; id <= last; id++)
		bytes += size_of(id);
	return bytes;
}

static void assert_root(const struct world *world, size_t number, allocation_id id,
			uint32_t members, uint64_t owned_count, uint64_t owned_bytes)
{
	const struct leak_root *root = &world->leaks->roots[number];

	assert_int_equal(root->id, id);
	assert_int_equal(root->members, members);
	assert_int_equal(root->owned_count, owned_count);
	assert_int_equal(root->owned_bytes, owned_bytes);
	assert_ptr_equal(leak_root_find(world->leaks, id), root);
}

static void assert_shared(const struct world *world, uint64_t count, uint64_t bytes)
{
	assert_int_equal(world->leaks->shared_count, count);
	assert_int_equal(world->leaks->shared_bytes, bytes);
}

#define WORLD(world, count, ...)                                                        \
	do {                                                                            \
		const struct edge edges_[] = { __VA_ARGS__ };                           \
		world_init((world), (count), edges_, sizeof(edges_) / sizeof(*edges_)); \
		find_leaks(world);                                                      \
	} while (0)

static void test_root_owns_what_hangs_on_it(void **state)
{
	_cleanup_(world_deinit) struct world world;

	WORLD(&world, 4, { 1, 0 }, { 1, 2 }, { 2, 3 });
	assert_int_equal(world.leaks->count, 1);
	assert_root(&world, 0, 1, 1, 4, bytes_of(0, 3));
	assert_shared(&world, 0, 0);
	assert_null(leak_root_find(world.leaks, 0));
	assert_null(leak_root_find(world.leaks, 3));
}

static void test_what_refers_to_nothing_is_a_root_of_its_own(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world, 3, NULL, 0);
	find_leaks(&world);
	assert_int_equal(world.leaks->count, 3);
	for (allocation_id id = 0; id < 3; id++)
		assert_root(&world, id, id, 1, 1, bytes_of(id, id));
}

static void test_ring_is_one_root(void **state)
{
	_cleanup_(world_deinit) struct world world;

	WORLD(&world, 5, { 1, 3 }, { 2, 1 }, { 3, 2 }, { 3, 4 }, { 4, 0 });
	assert_int_equal(world.leaks->count, 1);
	assert_root(&world, 0, 1, 3, 5, bytes_of(0, 4));
}

static void test_rings_with_common_members_are_one_ring(void **state)
{
	_cleanup_(world_deinit) struct world world;

	/* 0 -> 1 -> 2 -> 0 and 1 -> 3 -> 4 -> 1, and 4 -> 5 <-> 6 */
	WORLD(&world, 7, { 0, 1 }, { 1, 2 }, { 1, 3 }, { 2, 0 }, { 3, 4 }, { 4, 1 }, { 4, 5 },
	      { 5, 6 }, { 6, 5 });
	assert_int_equal(world.leaks->count, 1);
	assert_root(&world, 0, 0, 5, 7, bytes_of(0, 6));
}

static void test_ring_that_another_refers_to_is_no_root(void **state)
{
	_cleanup_(world_deinit) struct world world;

	/* 3 <-> 4, one of which refers to 0 <-> 1; 2 stands alone. */
	WORLD(&world, 5, { 0, 1 }, { 1, 0 }, { 3, 4 }, { 4, 1 }, { 4, 3 });
	assert_int_equal(world.leaks->count, 2);
	assert_root(&world, 0, 2, 1, 1, bytes_of(2, 2));
	assert_root(&world, 1, 3, 2, 4, bytes_of(0, 1) + bytes_of(3, 4));
}

static void test_what_several_roots_reach_is_counted_once(void **state)
{
	_cleanup_(world_deinit) struct world world;

	/* 0 and 1 share 2 -> 3, but 4 is of 1 only. */
	WORLD(&world, 5, { 0, 2 }, { 1, 2 }, { 1, 4 }, { 2, 3 });
	assert_int_equal(world.leaks->count, 2);
	assert_root(&world, 0, 0, 1, 1, bytes_of(0, 0));
	assert_root(&world, 1, 1, 1, 2, bytes_of(1, 1) + bytes_of(4, 4));
	assert_shared(&world, 2, bytes_of(2, 3));
}

/* Two ways from one root do not make it shared. */
static void test_two_ways_from_the_same_root_share_nothing(void **state)
{
	_cleanup_(world_deinit) struct world world;

	WORLD(&world, 4, { 0, 1 }, { 0, 2 }, { 0, 1 }, { 1, 3 }, { 2, 3 });
	assert_int_equal(world.leaks->count, 1);
	assert_root(&world, 0, 0, 1, 4, bytes_of(0, 3));
	assert_shared(&world, 0, 0);
}

static void test_only_the_leaked_part_counts(void **state)
{
	_cleanup_(world_deinit) struct world world;
	const struct edge edges[] = { { 0, 1 }, { 1, 2 }, { 1, 3 }, { 3, 0 } };

	/* 0 is anchored, 2 is free. */
	world_init(&world, 4, edges, 4);
	bitmap_clear(&world.leaked, 0);
	bitmap_clear(&world.leaked, 2);
	find_leaks(&world);
	assert_int_equal(world.leaks->count, 1);
	assert_root(&world, 0, 1, 1, 2, bytes_of(1, 1) + bytes_of(3, 3));
}

static void test_nothing_leaked_has_no_root(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world, 100, NULL, 0);
	bitmap_minus(&world.leaked, &world.leaked);
	find_leaks(&world);
	assert_int_equal(world.leaks->count, 0);
	assert_null(leak_root_find(world.leaks, 0));
	assert_shared(&world, 0, 0);
}

static void test_chain_of_any_length_has_one_root(void **state)
{
	enum { LENGTH = 1000000 };
	struct edge *edges = calloc(LENGTH, sizeof(*edges));
	_cleanup_(world_deinit) struct world world;

	/* From the highest to the lowest, and then in a ring. */
	assert_non_null(edges);
	for (uint32_t i = 1; i < LENGTH; i++)
		edges[i] = (struct edge){ i, i - 1 };
	edges[0] = (struct edge){ 0, LENGTH - 1 };
	world_init(&world, LENGTH, edges + 1, LENGTH - 1);
	find_leaks(&world);
	assert_int_equal(world.leaks->count, 1);
	assert_root(&world, 0, LENGTH - 1, 1, LENGTH, bytes_of(0, LENGTH - 1));
	world_deinit(&world);
	world_init(&world, LENGTH, edges, LENGTH);
	find_leaks(&world);
	assert_int_equal(world.leaks->count, 1);
	assert_root(&world, 0, 0, LENGTH, LENGTH, bytes_of(0, LENGTH - 1));
	free(edges);
}

static void test_interrupt_ends_the_search(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world, 10, NULL, 0);
	world.progress.interrupted = true;
	assert_error(leaks_create(&world.graph, world.index, &world.leaked, &world.account,
				  &world.progress, &world.leaks),
		     ERROR_INTERRUPTED, "interrupted");
}

static void interrupt_at_second_step(struct progress *progress)
{
	unsigned int *steps = progress->show_data;

	if (++*steps == 2)
		atomic_store(&progress->interrupted, true);
}

/* What a search has open takes memory: most of a chain, at its end. */
static void test_interrupt_ends_the_search_within_a_chain(void **state)
{
	enum { LENGTH = 1 << 20 };
	struct edge *edges = calloc(LENGTH, sizeof(*edges));
	_cleanup_(world_deinit) struct world world;
	unsigned int steps = 0;

	assert_non_null(edges);
	for (uint32_t i = 0; i < LENGTH - 1; i++)
		edges[i] = (struct edge){ i, i + 1 };
	world_init(&world, LENGTH, edges, LENGTH - 1);
	free(edges);
	world.progress.show = interrupt_at_second_step;
	world.progress.show_data = &steps;
	assert_error(leaks_create(&world.graph, world.index, &world.leaked, &world.account,
				  &world.progress, &world.leaks),
		     ERROR_INTERRUPTED, "interrupted");
	assert_int_equal(steps, 2);
	assert_in_range(world.account.peak - world.account.used, 0, (size_t)LENGTH * 20);
}

/* The model: who reaches whom, as a matrix. */
enum { FEW = 40 };

static bool reaches[FEW][FEW];
/* Returns how many edges there are; sparse graphs have many components. */
static size_t make_edges(struct edge *edges, const bool *leaked)
{
	uint64_t density = 20 + random_below(60);
	size_t count = 0;

	memset(reaches, 0, sizeof(reaches));
	for (uint32_t from = 0; from < FEW; from++) {
		reaches[from][from] = leaked[from];
		for (uint32_t to = 0; to < FEW; to++) {
			if (from == to || random_below(density) > 0)
				continue;
			edges[count++] = (struct edge){ from, to };
			reaches[from][to] |= leaked[from] && leaked[to];
		}
	}
	for (int middle = 0; middle < FEW; middle++)
		for (int from = 0; from < FEW; from++)
			for (int to = 0; to < FEW; to++)
				if (reaches[from][middle] && reaches[middle][to])
					reaches[from][to] = true;
	return count;
}

/* Whether id is the lowest member of a component that no other refers to. */
static bool is_root(allocation_id id, uint32_t *ret_members)
{
	*ret_members = 0;
	for (uint32_t other = 0; other < FEW; other++) {
		if (!reaches[other][id])
			continue;
		if (!reaches[id][other] || other < id)
			return false;
		++*ret_members;
	}
	return *ret_members > 0;
}

static void assert_as_in_model(const struct world *world)
{
	uint64_t owned[FEW] = { 0 }, bytes[FEW] = { 0 }, shared = 0, shared_bytes = 0;
	size_t roots = 0;
	uint32_t members;

	for (uint32_t id = 0; id < FEW; id++) {
		uint32_t owners = 0, owner = 0;

		for (uint32_t other = 0; other < FEW; other++) {
			if (!reaches[other][id] || !is_root(other, &members))
				continue;
			owners++;
			owner = other;
		}
		if (owners == 1) {
			owned[owner]++;
			bytes[owner] += size_of(id);
		} else if (owners > 1) {
			shared++;
			shared_bytes += size_of(id);
		}
	}
	for (uint32_t id = 0; id < FEW; id++)
		if (is_root(id, &members))
			assert_root(world, roots++, id, members, owned[id], bytes[id]);
		else
			assert_null(leak_root_find(world->leaks, id));
	assert_int_equal(world->leaks->count, roots);
	assert_shared(world, shared, shared_bytes);
}

static void test_roots_agree_with_who_reaches_whom(void **state)
{
	for (int i = 0; i < 500; i++) {
		struct edge edges[FEW * FEW];
		bool leaked[FEW];
		_cleanup_(world_deinit) struct world world;

		for (int id = 0; id < FEW; id++)
			leaked[id] = random_below(10) > 0;
		world_init(&world, FEW, edges, make_edges(edges, leaked));
		for (size_t id = 0; id < FEW; id++)
			if (!leaked[id])
				bitmap_clear(&world.leaked, id);
		find_leaks(&world);
		assert_as_in_model(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_root_owns_what_hangs_on_it),
		cmocka_unit_test(test_what_refers_to_nothing_is_a_root_of_its_own),
		cmocka_unit_test(test_ring_is_one_root),
		cmocka_unit_test(test_rings_with_common_members_are_one_ring),
		cmocka_unit_test(test_ring_that_another_refers_to_is_no_root),
		cmocka_unit_test(test_what_several_roots_reach_is_counted_once),
		cmocka_unit_test(test_two_ways_from_the_same_root_share_nothing),
		cmocka_unit_test(test_only_the_leaked_part_counts),
		cmocka_unit_test(test_nothing_leaked_has_no_root),
		cmocka_unit_test(test_chain_of_any_length_has_one_root),
		cmocka_unit_test(test_interrupt_ends_the_search),
		cmocka_unit_test(test_interrupt_ends_the_search_within_a_chain),
		cmocka_unit_test(test_roots_agree_with_who_reaches_whom),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
