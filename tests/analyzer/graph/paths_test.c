/*
 * The graph here is made up: this file answers what the search asks of it.
 */

#include "analyzer/graph/paths.h"

#include "tests/assertions.h"

#include <stdlib.h>

enum { COUNT = 64, NONE = NO_ALLOCATION };

/*
 * Who refers to each, NONE at the end:
 *
 *	0 -> 1 -> 2 -> 3 <-> 4        5 -> 3        6 -> 6        7
 */
struct graph {
	allocation_id incoming[COUNT][COUNT];
};

static const struct graph graph = { {
	{ NONE },
	{ 0, NONE },
	{ 1, NONE },
	{ 2, 4, 5, NONE },
	{ 3, NONE },
	{ NONE },
	{ 6, NONE },
	{ NONE },
} };

/* The same, by whom each refers to. */
static const struct graph forward = { {
	{ 1, NONE },
	{ 2, NONE },
	{ 3, NONE },
	{ 4, NONE },
	{ 3, NONE },
	{ 3, NONE },
	{ 6, NONE },
	{ NONE },
} };

struct edges graph_outgoing(const struct graph *incoming, allocation_id id)
{
	struct edges edges = { incoming->incoming[id], 0 };

	while (edges.targets[edges.count] != NONE)
		edges.count++;
	return edges;
}

void graph_fetch_offset(const struct graph *incoming, allocation_id id)
{
}

void graph_fetch_row(const struct graph *incoming, allocation_id id)
{
}

/* Check the path to target from the sources, which are bits. */
static void check_path(unsigned int sources, allocation_id target, const allocation_id *expected,
		       size_t count)
{
	_cleanup_(path_deinit) struct path path = { 0 };
	struct memory_account account = { 0 };
	struct progress progress = { 0 };
	struct bitmap bitmap;

	assert_no_error(bitmap_init(&bitmap, COUNT, &account));
	bitmap.words[0] = sources;
	assert_no_error(path_find(&forward, &graph, &bitmap, target, &account, &progress, &path));
	bitmap_deinit(&bitmap);
	assert_int_equal(account.used, 0);
	assert_int_equal(path.count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(path.ids[i], expected[i]);
}

static void test_path_leads_from_the_nearest_source_to_the_target(void **state)
{
	check_path(1 << 0, 4, (allocation_id[]){ 0, 1, 2, 3, 4 }, 5);
	check_path(1 << 0 | 1 << 2, 4, (allocation_id[]){ 2, 3, 4 }, 3);
	check_path(1 << 0 | 1 << 5, 4, (allocation_id[]){ 5, 3, 4 }, 3);
}

static void test_target_that_is_a_source_is_the_whole_path(void **state)
{
	check_path(1 << 3 | 1 << 2, 3, (allocation_id[]){ 3 }, 1);
	check_path(1 << 6, 6, (allocation_id[]){ 6 }, 1);
}

static void test_there_may_be_no_path(void **state)
{
	check_path(1 << 7, 4, NULL, 0);
	check_path(0, 6, NULL, 0);
	check_path(1 << 4, 0, NULL, 0);
}

static void test_interrupt_ends_the_search(void **state)
{
	struct memory_account account = { 0 };
	struct progress progress = { .interrupted = true };
	struct path path = { 0 };
	struct bitmap sources;

	assert_no_error(bitmap_init(&sources, COUNT, &account));
	bitmap_set(&sources, 0);
	assert_error(path_find(&forward, &graph, &sources, 4, &account, &progress, &path),
		     ERROR_INTERRUPTED, "interrupted");
	assert_null(path.ids);
	bitmap_deinit(&sources);
	assert_int_equal(account.used, 0);
}

/* A random graph of edges that go forth so far at most, and the same with all of them turned. */
static void make_random(struct graph *outgoing, struct graph *incoming, allocation_id forth)
{
	size_t ends[2][COUNT] = { 0 };

	for (allocation_id from = 0; from < COUNT; from++) {
		for (allocation_id to = 0; to < COUNT; to++) {
			if (from == to || to > from + forth ||
			    (to < from + forth && rand() % 4 != 0))
				continue;
			outgoing->incoming[from][ends[0][from]++] = to;
			incoming->incoming[to][ends[1][to]++] = from;
		}
	}
	for (size_t i = 0; i < COUNT; i++) {
		outgoing->incoming[i][ends[0][i]] = NONE;
		incoming->incoming[i][ends[1][i]] = NONE;
	}
}

/* A long path is there without its middle. */
static void check_same_path(struct distances *distances, const struct graph *outgoing,
			    const struct graph *incoming, const struct bitmap *sources,
			    allocation_id target, struct memory_account *account)
{
	_cleanup_(path_deinit) struct path expected = { 0 }, path = { 0 };
	struct progress progress = { 0 };

	assert_no_error(
		path_find(outgoing, incoming, sources, target, account, &progress, &expected));
	assert_no_error(distances_path(distances, incoming, target, &path));
	assert_int_equal(expected.gap, 0);
	assert_int_equal(path.count + path.gap, expected.count);
	if (path.gap)
		assert_int_equal(path.count, 2 * PATH_END);
	for (size_t i = 0; i < path.count; i++)
		assert_int_equal(path.ids[i], expected.ids[i < PATH_END ? i : i + path.gap]);
}

static void test_distances_lead_the_way_that_a_search_finds(void **state)
{
	for (unsigned int seed = 0; seed < 500; seed++) {
		struct memory_account account = { 0 };
		struct progress progress = { 0 };
		struct distances *distances = NULL;
		struct graph outgoing, incoming;
		struct bitmap sources;

		srand(seed);
		make_random(&outgoing, &incoming, seed % 2 ? COUNT : 1 + (unsigned int)rand() % 3);
		assert_no_error(bitmap_init(&sources, COUNT, &account));
		for (int i = rand() % 3; i >= 0; i--)
			bitmap_set(&sources, (size_t)rand() % COUNT);
		assert_no_error(
			distances_create(&outgoing, &sources, &account, &progress, &distances));
		for (allocation_id target = 0; target < COUNT; target++)
			check_same_path(distances, &outgoing, &incoming, &sources, target,
					&account);
		distances_destroy(distances);
		bitmap_deinit(&sources);
		assert_int_equal(account.used, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path_leads_from_the_nearest_source_to_the_target),
		cmocka_unit_test(test_target_that_is_a_source_is_the_whole_path),
		cmocka_unit_test(test_there_may_be_no_path),
		cmocka_unit_test(test_interrupt_ends_the_search),
		cmocka_unit_test(test_distances_lead_the_way_that_a_search_finds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
