#include "analyzer/heap/unused.h"

#include "tests/analyzer/heap/made_index.h"
#include "tests/assertions.h"

static struct memory_account account;

enum { OUTSIDE = 0x500000 };

TEST(words_are_unused_where_that_was_said)
{
	_cleanup_(allocation_index_destroy) struct allocation_index *index =
		index_make(&account, 100, NULL);
	const allocation_id id = 60;
	const uint64_t start = allocation_start(index, id), used = 17;
	struct unused unused;

	assert_no_error(unused_init(&unused, NULL, index, 100, &account));
	assert_no_error(unused_add_rest(&unused, start, used));
	assert_no_error(unused_add(&unused, OUTSIDE, OUTSIDE + 16));
	unused_seal(&unused);
	assert_true(unused_is_in_heap(&unused));
	assert_false(unused_has(&unused, id, start + 8));
	assert_true(unused_has(&unused, id, start + 16)); /* it is in use in part */
	assert_true(unused_has(&unused, id, start + 24));
	assert_true(unused_has(&unused, id, start + allocation_size(index, id) - 8));
	assert_false(unused_has(&unused, id + 1, allocation_start(index, id + 1) + 24));
	assert_false(unused_has(&unused, NO_ALLOCATION, OUTSIDE - 8));
	assert_true(unused_has(&unused, NO_ALLOCATION, OUTSIDE + 8));
	assert_false(unused_has(&unused, NO_ALLOCATION, OUTSIDE + 16));
	unused_deinit(&unused);
}

TEST(there_are_no_more_ranges_than_the_budget)
{
	_cleanup_(allocation_index_destroy) struct allocation_index *index =
		index_make(&account, 1, NULL);
	struct unused unused;

	assert_no_error(unused_init(&unused, NULL, index, 2, &account));
	for (uint64_t i = 0; i < 5; i++)
		assert_no_error(unused_add(&unused, OUTSIDE + 0x100 * i, OUTSIDE + 0x100 * i + 8));
	unused_seal(&unused);
	assert_int_equal(unused.ranges.count, 2);
	assert_false(unused_is_in_heap(&unused));
	unused_deinit(&unused);
}
