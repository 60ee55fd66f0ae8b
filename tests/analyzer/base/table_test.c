#include "analyzer/base/table.h"

#include "analyzer/base/bytes.h"
#include "tests/assertions.h"

struct entry {
	uint64_t key, value;
};

struct entries {
	HASH_TABLE(struct entry);
};

static struct entry *find(const struct entries *table, uint64_t key)
{
	return table_find(table, key, entry, entry->key == key);
}

TEST(what_was_added_is_found_and_nothing_else)
{
	struct memory_account account = { 0 };
	_cleanup_(table_release) struct entries table = { .memory.account = &account };

	assert_null(find(&table, 0));
	for (uint64_t i = 0; i < 10000; i++)
		assert_no_error(table_append(&table, i * 4096, (struct entry){ i * 4096, i * 7 }));
	assert_int_equal(table.count, 10000);
	for (uint64_t i = 0; i < 10000; i++) {
		assert_int_equal(find(&table, i * 4096)->value, i * 7);
		assert_null(find(&table, i * 4096 + 8));
	}
}

TEST(items_keep_the_order_in_which_they_were_added)
{
	struct memory_account account = { 0 };
	_cleanup_(table_release) struct entries table = { .memory.account = &account };

	for (uint64_t i = 0; i < 1000; i++)
		assert_no_error(table_append(&table, i ^ 0x155, (struct entry){ i ^ 0x155, i }));
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(table.items[i].value, i);
}

TEST(items_of_one_key_are_told_apart)
{
	struct memory_account account = { 0 };
	_cleanup_(table_release) struct entries table = { .memory.account = &account };

	for (uint64_t i = 0; i < 100; i++)
		assert_no_error(table_append(&table, 5, (struct entry){ 5, i }));
	for (uint64_t i = 0; i < 100; i++)
		assert_ptr_equal(table_find(&table, 5, entry, entry->value == i), &table.items[i]);
	assert_null(table_find(&table, 5, entry, entry->value == 100));
}

TEST(texts_are_keys)
{
	struct memory_account account = { 0 };
	HASH_TABLE(const char *) names = { .memory.account = &account };
	char copy[] = "beta";

	assert_no_error(table_append(&names, hash_text(secret_factor(), "alpha"), "alpha"));
	assert_no_error(table_append(&names, hash_text(secret_factor(), "beta"), "beta"));
	assert_ptr_equal(table_find(&names, hash_text(secret_factor(), copy), name,
				    strcmp(*name, copy) == 0),
			 &names.items[1]);
	assert_null(table_find(&names, hash_text(secret_factor(), ""), name, **name == '\0'));
	table_release(&names);
}

TEST(what_it_takes_is_counted_limited_and_released)
{
	struct memory_account account = { .limit = 1 << 18 };
	struct entries table = { .memory.account = &account };
	struct error *error = NULL;
	uint64_t added = 0;

	while (!error && added < account.limit) {
		error = table_append(&table, added, (struct entry){ added, added });
		added += !error;
	}
	assert_error(error, ERROR_NO_MEMORY, "out of memory");
	assert_in_range(added, 1000, account.limit / sizeof(struct entry));
	assert_int_equal(table.count, added);
	assert_int_equal(find(&table, added - 1)->value, added - 1);
	assert_null(find(&table, added));
	table_release(&table);
	assert_int_equal(table.count, 0);
	assert_int_equal(atomic_load(&account.used), 0);
	assert_no_error(table_append(&table, 1, (struct entry){ 1, 1 }));
	table_release(&table);
}

/*
 * A hash that multiplies by the golden ratio, as everyone does, puts all of these into one slot.
 * Nobody who makes a dump shall be able to do that.
 */
static uint64_t awkward_key(uint64_t number)
{
	uint64_t inverse = 1;

	for (int i = 0; i < 6; i++)
		inverse *= 2 - UINT64_C(0x9e3779b97f4a7c15) * inverse;
	return (number << 52 | number >> 12) * inverse;
}

static size_t longest_run(const struct table_slots *slots)
{
	size_t run = 0, longest = 0;

	for (size_t i = 0; i < slots->memory.size / sizeof(struct table_slot); i++) {
		run = slots->list[i].number ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

static void check_runs(uint64_t (*key)(uint64_t number))
{
	enum { KEYS = 1 << 15, LONGEST = KEYS / 32 };
	struct memory_account account = { 0 };
	_cleanup_(table_release) struct entries table = { .memory.account = &account };

	for (uint64_t i = 0; i < KEYS; i++)
		assert_no_error(table_append(&table, key(i), (struct entry){ key(i), i }));
	assert_in_range(longest_run(&table.slots), 1, LONGEST);
}

static uint64_t page(uint64_t number)
{
	return number * 4096;
}

static uint64_t number_itself(uint64_t number)
{
	return number;
}

TEST(no_keys_are_known_to_share_a_slot)
{
	check_runs(awkward_key);
	check_runs(page);
	check_runs(number_itself);
}
