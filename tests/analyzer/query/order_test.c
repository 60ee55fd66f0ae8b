/*
 * The heap here is made up: what the order asks of the analysis and its index
 * is answered by this file.
 */

#include "analyzer/query/order.h"

#include "tests/assertions.h"

enum { COUNT = 1000 };

struct analysis {
	struct progress progress;
	struct memory_account account;
};

struct progress *analysis_progress(struct analysis *analysis)
{
	return &analysis->progress;
}

struct memory_account *analysis_account(struct analysis *analysis)
{
	return &analysis->account;
}

const struct allocation_index *analysis_index(const struct analysis *analysis)
{
	return NULL;
}

/* Ten sizes, each of them of a hundred allocations. */
uint64_t allocation_size(const struct allocation_index *index, allocation_id id)
{
	return (id * 7 % 10 + 1) * 16;
}

struct seen {
	allocation_id ids[COUNT];
	size_t count;
	size_t stop_at; /* 0: never */
};

static bool see(void *data, allocation_id id)
{
	struct seen *seen = data;

	seen->ids[seen->count++] = id;
	return seen->count != seen->stop_at;
}

/* All with an even id. */
static void fill(struct analysis *analysis, struct members *members)
{
	assert_no_error(members_init(members, COUNT, &analysis->account));
	for (size_t id = 0; id < COUNT; id += 2)
		bitmap_set(&members->set, id);
}

static void visit_with(struct set_query query, struct seen *seen)
{
	_cleanup_(members_deinit) struct members members = { 0 };
	struct analysis analysis = { 0 };
	size_t used;

	fill(&analysis, &members);
	used = analysis.account.used;
	assert_no_error(query_visit(&analysis, &query, &members, see, seen));
	assert_int_equal(analysis.account.used, used);
}

static void test_members_come_by_address(void **state)
{
	struct seen seen = { 0 };

	visit_with((struct set_query){ 0 }, &seen);
	assert_int_equal(seen.count, COUNT / 2);
	for (size_t i = 0; i < seen.count; i++)
		assert_int_equal(seen.ids[i], 2 * i);
}

static void check_by_size(const struct seen *seen)
{
	for (size_t i = 1; i < seen->count; i++) {
		uint64_t last = allocation_size(NULL, seen->ids[i - 1]);
		uint64_t size = allocation_size(NULL, seen->ids[i]);

		assert_true(size <= last);
		if (size == last)
			assert_true(seen->ids[i] > seen->ids[i - 1]);
	}
}

static void test_large_ones_come_first_and_equal_ones_by_address(void **state)
{
	struct seen seen = { 0 };

	visit_with((struct set_query){ .sort = SORT_BYTES }, &seen);
	assert_int_equal(seen.count, COUNT / 2);
	check_by_size(&seen);
	assert_int_equal(allocation_size(NULL, seen.ids[0]), 9 * 16);
}

static void test_limit_takes_the_first_of_the_order(void **state)
{
	struct seen all = { 0 }, some = { 0 };

	visit_with((struct set_query){ .sort = SORT_BYTES }, &all);
	visit_with((struct set_query){ .sort = SORT_BYTES, .limit = 123 },
		   &some);
	assert_int_equal(some.count, 123);
	assert_memory_equal(some.ids, all.ids, 123 * sizeof(*some.ids));
	some.count = 0;
	visit_with((struct set_query){ .limit = 3 }, &some);
	assert_int_equal(some.count, 3);
	some.count = 0;
	visit_with((struct set_query){ .limit = COUNT }, &some);
	assert_int_equal(some.count, COUNT / 2);
}

static void test_visit_ends_when_told_to(void **state)
{
	struct seen seen = { .stop_at = 5 };

	visit_with((struct set_query){ 0 }, &seen);
	assert_int_equal(seen.count, 5);
	seen.count = 0;
	visit_with((struct set_query){ .sort = SORT_BYTES }, &seen);
	assert_int_equal(seen.count, 5);
}

static void test_interrupt_ends_the_visit(void **state)
{
	_cleanup_(members_deinit) struct members members = { 0 };
	struct analysis analysis = { .progress.interrupted = true };
	const struct set_query query = { .sort = SORT_BYTES };
	struct seen seen = { 0 };

	fill(&analysis, &members);
	assert_error(query_visit(&analysis, &query, &members, see, &seen),
		     ERROR_INTERRUPTED, "interrupted");
	assert_int_equal(seen.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members_come_by_address),
		cmocka_unit_test(
			test_large_ones_come_first_and_equal_ones_by_address),
		cmocka_unit_test(test_limit_takes_the_first_of_the_order),
		cmocka_unit_test(test_visit_ends_when_told_to),
		cmocka_unit_test(test_interrupt_ends_the_visit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
