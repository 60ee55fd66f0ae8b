#include "analyzer/base/array.h"

#include "tests/assertions.h"

struct pair {
	uint32_t key, value;
};

DEFINE_COMPARE(compare_pairs, struct pair, DESCENDING(key), ASCENDING(value))

TEST(items_are_kept_as_the_array_grows)
{
	struct memory_account account = { 0 };
	_cleanup_(array_release) ARRAY(struct pair) pairs = { .memory.account = &account };

	for (uint32_t i = 0; i < 100000; i++)
		assert_no_error(array_append(&pairs, (struct pair){ i, i + 1 }));
	assert_int_equal(pairs.count, 100000);
	for (uint32_t i = 0; i < 100000; i++)
		assert_int_equal(pairs.items[i].value, i + 1);
	assert_int_equal(account.used, pairs.memory.size);
}

TEST(item_that_would_pass_the_limit_is_refused)
{
	struct memory_account account = { .limit = 100000 };
	_cleanup_(array_release) ARRAY(uint64_t) numbers = { .memory.account = &account };
	struct error *error = NULL;

	while (!error)
		error = array_append(&numbers, numbers.count);
	assert_ptr_equal(error, &error_no_memory);
	assert_int_equal(numbers.count * sizeof(uint64_t), numbers.memory.size);
	assert_int_equal(numbers.items[numbers.count - 1], numbers.count - 1);
}

TEST(new_items_are_zero)
{
	struct memory_account account = { 0 };
	_cleanup_(array_release) ARRAY(uint32_t) numbers = { .memory.account = &account };

	assert_no_error(array_append(&numbers, 7));
	assert_no_error(array_resize(&numbers, 3));
	assert_int_equal(numbers.count, 3);
	assert_int_equal(numbers.items[0], 7);
	assert_int_equal(numbers.items[2], 0);
	array_release(&numbers);
	assert_int_equal(numbers.count, 0);
	assert_int_equal(account.used, 0);
}

TEST(items_are_sorted_by_each_member_in_its_direction)
{
	struct memory_account account = { 0 };
	_cleanup_(array_release) ARRAY(struct pair) pairs = { .memory.account = &account };
	static const struct pair order[] = { { 3, 1 }, { 2, 4 }, { 2, 5 } };

	array_sort(&pairs, compare_pairs);
	for (size_t i = COUNT_OF(order); i > 0; i--)
		assert_no_error(array_append(&pairs, order[i % COUNT_OF(order)]));
	array_sort(&pairs, compare_pairs);
	assert_memory_equal(pairs.items, order, sizeof(order));
}
