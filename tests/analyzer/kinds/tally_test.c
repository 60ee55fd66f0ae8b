#include "analyzer/kinds/tally.h"

#include "tests/assertions.h"

TEST(counts_add_up_by_key)
{
	enum { KEYS = 5000 };
	struct memory_account account = { 0 };
	_cleanup_(table_release) struct tally_table table = { .memory.account = &account };

	assert_null(tally_find(&table, 0));
	for (int round = 0; round < 3; round++)
		for (uint64_t key = 0; key < KEYS; key++)
			assert_no_error(tally_add(
				&table,
				(struct tally){ .key = key * 16, .count = 1, .bytes = key }));
	assert_int_equal(table.count, KEYS);
	assert_int_equal(tally_find(&table, 0)->count, 3);
	assert_int_equal(tally_find(&table, 16 * 7)->bytes, 21);
	assert_null(tally_find(&table, 1));
}

TEST(keys_are_numbered_as_they_come)
{
	struct memory_account account = { 0 };
	_cleanup_(table_release) struct tally_table table = { .memory.account = &account };

	for (uint64_t i = 0; i < 2000; i++) {
		struct tally tally = { .key = i % 1000 * 7, .count = 1 };
		uint32_t number;

		assert_no_error(tally_add_numbered(&table, tally, &number));
		assert_int_equal(number, i % 1000);
		assert_int_equal(tally_find(&table, tally.key)->number, number);
	}
}

TEST(nothing_is_no_key)
{
	struct memory_account account = { 0 };
	_cleanup_(table_release) struct tally_table table = { .memory.account = &account };

	assert_no_error(tally_add(&table, (struct tally){ .key = 1 }));
	assert_int_equal(table.count, 0);
}

static void check_order(int (*order)(const void *, const void *), const uint64_t *keys)
{
	static const struct tally tallies[] = {
		{ .key = 30, .count = 2, .bytes = 5 },
		{ .key = 10, .count = 1, .bytes = 9 },
		{ .key = 20, .count = 2, .bytes = 5 },
	};
	struct memory_account account = { 0 };
	_cleanup_(table_release) struct tally_table table = { .memory.account = &account };

	for (size_t i = 0; i < 3; i++)
		assert_no_error(tally_add(&table, tallies[i]));
	array_sort(&table, order);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(table.items[i].key, keys[i]);
}

TEST(most_come_first_and_equal_ones_by_key)
{
	check_order(tally_compare_counts, (uint64_t[]){ 20, 30, 10 });
	check_order(tally_compare_bytes, (uint64_t[]){ 10, 20, 30 });
	check_order(tally_compare_keys, (uint64_t[]){ 10, 20, 30 });
	check_order(tally_compare_keys_down, (uint64_t[]){ 30, 20, 10 });
}
