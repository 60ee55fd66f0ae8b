#include "analyzer/base/memory.h"

#include "tests/assertions.h"

#include <string.h>

static void assert_zero(const struct memory *memory, size_t from)
{
	const unsigned char *bytes = memory->bytes;

	for (size_t i = from; i < memory->size; i++)
		assert_int_equal(bytes[i], 0);
}

TEST(new_memory_is_zero)
{
	struct memory_account account = { 0 };
	struct memory memory = { .account = &account };

	assert_no_error(memory_resize(&memory, 10000));
	assert_int_equal(memory.size, 10000);
	assert_zero(&memory, 0);
	memory_release(&memory);
}

TEST(growing_keeps_the_contents_and_adds_zeros)
{
	struct memory_account account = { 0 };
	struct memory memory = { .account = &account };
	const unsigned char *bytes;

	assert_no_error(memory_resize(&memory, 100));
	memset(memory.bytes, 0xaa, 100);
	assert_no_error(memory_resize(&memory, 1 << 20));
	bytes = memory.bytes;
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(bytes[i], 0xaa);
	assert_zero(&memory, 100);
	memory_release(&memory);
}

TEST(what_was_given_up_is_zero_when_it_comes_back)
{
	struct memory_account account = { 0 };
	struct memory memory = { .account = &account };

	assert_no_error(memory_resize(&memory, 10000));
	memset(memory.bytes, 0xaa, 10000);
	assert_no_error(memory_resize(&memory, 100));
	assert_no_error(memory_resize(&memory, 10000));
	assert_zero(&memory, 100);
	memory_release(&memory);
}

TEST(what_is_given_back_counts_no_more)
{
	enum { STEP = 1 << 16 };
	struct memory_account account = { 0 };
	struct memory memory = { .account = &account };
	const unsigned char *bytes;

	assert_no_error(memory_resize(&memory, 5 * STEP));
	memset(memory.bytes, 0xaa, memory.size);
	assert_int_equal(memory_give_back(&memory, 1, STEP + 1), STEP);
	assert_int_equal(memory_give_back(&memory, STEP, STEP + 1), STEP);
	assert_true(account.used > 4 * STEP && account.used < 5 * STEP);
	memory_give_back(&memory, 2 * STEP, 4 * STEP);
	assert_true(account.used < 3 * STEP);
	bytes = memory.bytes;
	assert_int_equal(bytes[0], 0xaa);
	assert_int_equal(bytes[2 * STEP - 1], 0xaa);
	assert_int_equal(bytes[4 * STEP], 0xaa);
	memory_release(&memory);
	assert_int_equal(account.used, 0);
}

TEST(reserving_gives_at_least_what_is_asked_for)
{
	struct memory_account account = { 0 };
	struct memory memory = { .account = &account };
	size_t sizes = 0, last = 0;

	for (size_t size = 1; size <= 10 << 20; size += 4096) {
		assert_no_error(memory_reserve(&memory, size));
		assert_true(memory.size >= size);
		sizes += memory.size != last;
		last = memory.size;
	}
	/* By a quarter each time, not by every single step. */
	assert_true(sizes < 40);
	assert_no_error(memory_reserve(&memory, 1));
	assert_int_equal(memory.size, last);
	memory_release(&memory);
}

TEST(account_knows_what_is_held_and_what_was_at_most)
{
	struct memory_account account = { 0 };
	struct memory first = { .account = &account }, second = first;

	assert_no_error(memory_resize(&first, 5000));
	assert_no_error(memory_resize(&second, 3000));
	assert_int_equal(account.used, 8000);
	assert_no_error(memory_resize(&first, 1000));
	assert_int_equal(account.used, 4000);
	memory_release(&second);
	assert_no_error(memory_resize(&first, 0));
	assert_null(first.bytes);
	assert_int_equal(account.used, 0);
	assert_int_equal(account.peak, 8000);
}

TEST(impossible_size_is_an_error_and_changes_nothing)
{
	struct memory_account account = { 0 };
	struct memory memory = { .account = &account };

	assert_no_error(memory_resize(&memory, 64));
	memset(memory.bytes, 0xaa, 64);
	assert_error(memory_resize(&memory, SIZE_MAX / 2), ERROR_NO_MEMORY, "out of memory");
	assert_error(memory_reserve(&memory, SIZE_MAX / 2), ERROR_NO_MEMORY, "out of memory");
	assert_int_equal(memory.size, 64);
	assert_int_equal(((unsigned char *)memory.bytes)[63], 0xaa);
	assert_int_equal(account.used, 64);
	memory_release(&memory);
}

TEST(nothing_goes_beyond_the_limit)
{
	struct memory_account account = { .limit = 1000 };
	struct memory memory = { .account = &account };
	struct memory other = { .account = &account };

	assert_no_error(memory_resize(&memory, 600));
	assert_no_error(memory_resize(&other, 400));
	assert_error(memory_resize(&other, 500), ERROR_NO_MEMORY, "out of memory");
	assert_int_equal(account.refused, 100);
	assert_int_equal(account.beside, 1000);
	assert_int_equal(other.size, 400);
	assert_no_error(memory_resize(&memory, 500));
	assert_no_error(memory_resize(&other, 500));
	assert_int_equal(account.peak, 1000);
	memory_release(&memory);
	memory_release(&other);
	assert_int_equal(account.used, 0);
}

TEST(room_is_filled_without_moving)
{
	struct memory_account account = { 0 };
	struct memory memory = { .account = &account };
	unsigned char *bytes;

	assert_no_error(memory_keep_room(&memory, (size_t)1 << 32));
	assert_int_equal(memory.size, 0);
	assert_int_equal(account.used, 0);
	bytes = memory.bytes;
	for (size_t size = 1000; size <= 64000000; size *= 4) {
		assert_no_error(memory_fill_room(&memory, size));
		assert_ptr_equal(memory.bytes, bytes);
		assert_int_equal(account.used, size);
		bytes[size - 1] = 0xaa;
	}
	assert_no_error(memory_resize(&memory, 5000));
	assert_int_equal(memory.room, 0);
	assert_int_equal(((unsigned char *)memory.bytes)[999], 0xaa);
	assert_int_equal(account.used, 5000);
	assert_no_error(memory_resize(&memory, (size_t)1 << 20));
	assert_zero(&memory, 5000);
	memory_release(&memory);
	assert_int_equal(account.used, 0);
}

TEST(room_may_stay_empty)
{
	struct memory_account account = { .limit = 1000 };
	struct memory memory = { .account = &account };

	assert_no_error(memory_keep_room(&memory, 1 << 20));
	assert_error(memory_fill_room(&memory, 1001), ERROR_NO_MEMORY, "out of memory");
	assert_no_error(memory_fill_room(&memory, 0));
	memory_release(&memory);
	assert_no_error(memory_keep_room(&memory, 0));
	assert_no_error(memory_keep_room(&memory, 1 << 20));
	assert_no_error(memory_resize(&memory, 0));
	assert_null(memory.bytes);
	assert_error(memory_keep_room(&memory, SIZE_MAX / 2), ERROR_NO_MEMORY, "out of memory");
	assert_int_equal(account.used, 0);
}
