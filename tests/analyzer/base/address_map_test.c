#include "analyzer/base/address_map.h"

#include "tests/assertions.h"

static void test_what_was_added_is_found_and_nothing_else(void **state)
{
	struct memory_account account = { 0 };
	_cleanup_(address_map_deinit) struct address_map map = { 0 };

	address_map_init(&map, &account);
	assert_int_equal(address_map_find(&map, 0), NOT_IN_MAP);
	for (uint32_t i = 0; i < 10000; i++)
		assert_no_error(address_map_add(&map, (uint64_t)i * 4096, i * 7));
	for (uint32_t i = 0; i < 10000; i++) {
		assert_int_equal(address_map_find(&map, (uint64_t)i * 4096), i * 7);
		assert_int_equal(address_map_find(&map, (uint64_t)i * 4096 + 8), NOT_IN_MAP);
	}
}

static void test_what_it_takes_is_counted_and_released(void **state)
{
	struct memory_account account = { 0 };
	struct address_map map;

	address_map_init(&map, &account);
	assert_no_error(address_map_add(&map, 1, 1));
	assert_true(atomic_load(&account.used) > 0);
	address_map_deinit(&map);
	assert_int_equal(atomic_load(&account.used), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_added_is_found_and_nothing_else),
		cmocka_unit_test(test_what_it_takes_is_counted_and_released),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
