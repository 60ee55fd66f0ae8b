#include "analyzer/diff/group_table.h"

#include "tests/assertions.h"

static uint32_t add(struct group_table *table, const char *text, uint64_t size, size_t core,
		    uint64_t bytes)
{
	const struct census_name name = { .text = text, .size = size };
	uint32_t number;

	assert_no_error(
		group_table_add(table, &name, core, (struct set_total){ 1, bytes }, &number));
	return number;
}

static void assert_order(const struct group_table *table, const char *const *names, size_t count)
{
	assert_int_equal(table->groups.count, count);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(table->groups.items[i].text, names[i]);
}

TEST(group_is_known_again_by_name_and_size)
{
	struct memory_account account = { 0 };
	struct group_table table;

	group_table_init(&table, &account);
	assert_int_equal(add(&table, "a", 0, 0, 10), 0);
	assert_int_equal(add(&table, "a", 8, 0, 10), 1);
	assert_int_equal(add(&table, "a", 0, 1, 30), 0);
	assert_int_equal(add(&table, "a", 0, 1, 5), 0);
	assert_int_equal(group_total(&table, &table.groups.items[0], 1).bytes, 35);
	assert_int_equal(group_total(&table, &table.groups.items[1], 1).bytes, 0);
	group_table_deinit(&table);
	assert_int_equal(account.used, 0);
}

TEST(many_groups_are_found_again)
{
	enum { MANY = 5000 };
	struct memory_account account = { 0 };
	struct group_table table;

	group_table_init(&table, &account);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(add(&table, "block", i + 1, 0, 1), i);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(add(&table, "block", i + 1, 1, 1), i);
	group_table_deinit(&table);
}

TEST(what_grew_most_comes_first)
{
	static const char *const names[] = { "much", "little", "same", "less" };
	struct memory_account account = { 0 };
	struct group_table table;

	group_table_init(&table, &account);
	add(&table, "less", 0, 0, 100);
	add(&table, "same", 0, 0, 100);
	add(&table, "same", 0, 1, 100);
	add(&table, "little", 0, 1, 10);
	add(&table, "much", 0, 1, 1000);
	group_table_sort(&table, 2);
	assert_order(&table, names, 4);
	group_table_deinit(&table);
}

TEST(what_always_grew_comes_before_what_grew_more)
{
	static const char *const names[] = { "steady", "jumpy" };
	static const uint64_t steady[] = { 10, 20, 30 };
	static const uint64_t jumpy[] = { 100, 50, 1000 };
	struct memory_account account = { 0 };
	struct group_table table;

	group_table_init(&table, &account);
	for (size_t i = 0; i < 3; i++) {
		add(&table, "jumpy", 0, i, jumpy[i]);
		add(&table, "steady", 0, i, steady[i]);
	}
	group_table_sort(&table, 3);
	assert_order(&table, names, 2);
	assert_int_equal(table.groups.items[0].steps, 2);
	group_table_deinit(&table);
}
