#include "analyzer/heap/owned.h"

#include "tests/assertions.h"

static struct memory_account account;

static void test_ranges_are_found_by_address(void **state)
{
	const struct memory_range some[] = { { 0x5000, 0x6000 }, { 0x1000, 0x2000 } };
	const struct memory_range more[] = { { 0x1800, 0x3000 }, { 0x6000, 0x7000 } };
	struct owned_memory owned = { .ranges.memory.account = &account };

	assert_no_error(owned_memory_add(&owned, some, 2));
	assert_no_error(owned_memory_add(&owned, more, 2));
	assert_int_equal(owned.ranges.count, 2);
	assert_int_equal(owned_memory_find(&owned, 0)->start, 0x1000);
	assert_int_equal(owned_memory_find(&owned, 0x1fff)->end, 0x3000);
	assert_int_equal(owned_memory_find(&owned, 0x3000)->start, 0x5000);
	assert_int_equal(owned_memory_find(&owned, 0x6fff)->end, 0x7000);
	assert_null(owned_memory_find(&owned, 0x7000));
	array_release(&owned.ranges);
}

static void test_nobody_owns_anything_at_first(void **state)
{
	const struct owned_memory owned = { .ranges.memory.account = &account };

	assert_null(owned_memory_find(&owned, 0x1000));
	assert_null(owned_memory_find(NULL, 0x1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges_are_found_by_address),
		cmocka_unit_test(test_nobody_owns_anything_at_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
