#include "analyzer/query/order.h"

#include "tests/assertions.h"

/* Offer values, by id, and check which ids are kept, in their order. */
static void check(const uint64_t *values, size_t count, size_t limit, const allocation_id *expected,
		  size_t expected_count)
{
	struct memory_account account = { 0 };
	struct largest largest;

	largest_init(&largest, limit, &account);
	for (size_t i = 0; i < count; i++)
		assert_no_error(largest_offer(&largest, (allocation_id)i, values[i]));
	largest_sort(&largest);
	assert_int_equal(largest.entries.count, expected_count);
	for (size_t i = 0; i < expected_count; i++)
		assert_int_equal(largest_at(&largest, i), expected[i]);
	largest_deinit(&largest);
	assert_int_equal(account.used, 0);
}

static const uint64_t some[] = { 5, 9, 1, 9, 7, 1, 8, 3 };
static const allocation_id in_order[] = { 1, 3, 6, 4, 0, 7, 2, 5 };

TEST(the_largest_come_first_and_equal_ones_by_address)
{
	check(some, 8, 0, in_order, 8);
}

TEST(a_limit_keeps_the_largest)
{
	for (size_t limit = 1; limit <= 8; limit++)
		check(some, 8, limit, in_order, limit);
	check(some, 8, 100, in_order, 8);
}

TEST(nothing_offered_is_nothing_kept)
{
	check(NULL, 0, 0, NULL, 0);
	check(NULL, 0, 3, NULL, 0);
}
