/*
 * The graph here is made up: this file answers what the search asks of it.
 */

#include "analyzer/graph/paths.h"

#include "tests/assertions.h"

enum { COUNT = 8, NONE = NO_ALLOCATION };

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

struct edges graph_outgoing(const struct graph *incoming, allocation_id id)
{
	struct edges edges = { incoming->incoming[id], 0 };

	while (edges.targets[edges.count] != NONE)
		edges.count++;
	return edges;
}

/* Check the path to target from the sources, which are bits. */
static void check_path(unsigned int sources, allocation_id target,
		       const allocation_id *expected, size_t count)
{
	_cleanup_(path_deinit) struct path path = { 0 };
	struct memory_account account = { 0 };
	struct progress progress = { 0 };
	struct bitmap bitmap;

	assert_no_error(bitmap_init(&bitmap, COUNT, &account));
	bitmap.words[0] = sources;
	assert_no_error(
		path_find(&graph, &bitmap, target, &account, &progress, &path));
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
	assert_error(path_find(&graph, &sources, 4, &account, &progress, &path),
		     ERROR_INTERRUPTED, "interrupted");
	assert_null(path.ids);
	bitmap_deinit(&sources);
	assert_int_equal(account.used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_path_leads_from_the_nearest_source_to_the_target),
		cmocka_unit_test(
			test_target_that_is_a_source_is_the_whole_path),
		cmocka_unit_test(test_there_may_be_no_path),
		cmocka_unit_test(test_interrupt_ends_the_search),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
