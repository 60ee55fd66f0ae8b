#include "analyzer/base/bitmap.h"

#include "tests/assertions.h"

enum { COUNT = 200 };

static struct memory_account account;

/* A bitmap of COUNT bits with those set; the list ends with COUNT. */
static struct bitmap bitmap_of(const size_t *bits)
{
	struct bitmap bitmap;

	assert_no_error(bitmap_init(&bitmap, COUNT, &account));
	while (*bits < COUNT)
		bitmap_set(&bitmap, *bits++);
	return bitmap;
}

#define BITMAP(...) bitmap_of((const size_t[]){ __VA_ARGS__, COUNT })

static void assert_bits(const struct bitmap *bitmap, const size_t *bits)
{
	bitmap_for_each(bit, bitmap)
		assert_int_equal(bit, *bits++);
	assert_int_equal(*bits, COUNT);
}

#define ASSERT_BITS(bitmap, ...) assert_bits((bitmap), (const size_t[]){ __VA_ARGS__, COUNT })

TEST(new_bitmap_is_empty)
{
	_cleanup_(bitmap_deinit) struct bitmap bitmap = BITMAP(COUNT);

	assert_int_equal(bitmap_weight(&bitmap), 0);
	assert_int_equal(bitmap_next(&bitmap, 0), COUNT);
	assert_false(bitmap_get(&bitmap, COUNT - 1));
}

TEST(bits_are_set_and_cleared_one_by_one)
{
	_cleanup_(bitmap_deinit) struct bitmap bitmap = BITMAP(0, 63, 64, 199);

	assert_true(bitmap_get(&bitmap, 63));
	assert_false(bitmap_get(&bitmap, 62));
	bitmap_clear(&bitmap, 63);
	bitmap_clear(&bitmap, 62);
	bitmap_set_atomic(&bitmap, 65);
	bitmap_set(&bitmap, 64);
	assert_int_equal(bitmap_weight(&bitmap), 4);
	ASSERT_BITS(&bitmap, 0, 64, 65, 199);
}

TEST(next_is_the_bit_itself_or_one_above)
{
	_cleanup_(bitmap_deinit) struct bitmap bitmap = BITMAP(5, 130);

	assert_int_equal(bitmap_next(&bitmap, 5), 5);
	assert_int_equal(bitmap_next(&bitmap, 6), 130);
	assert_int_equal(bitmap_next(&bitmap, 131), COUNT);
	assert_int_equal(bitmap_next(&bitmap, COUNT), COUNT);
	assert_int_equal(bitmap_next(&bitmap, SIZE_MAX), COUNT);
}

TEST(next_clear_is_the_next_that_is_not_set)
{
	_cleanup_(bitmap_deinit) struct bitmap bitmap = BITMAP(5, 6, 130);

	assert_int_equal(bitmap_next_clear(&bitmap, 4), 4);
	assert_int_equal(bitmap_next_clear(&bitmap, 5), 7);
	assert_int_equal(bitmap_next_clear(&bitmap, COUNT), COUNT);
	bitmap_fill(&bitmap);
	assert_int_equal(bitmap_next_clear(&bitmap, 0), COUNT);
	bitmap_clear(&bitmap, COUNT - 1);
	assert_int_equal(bitmap_next_clear(&bitmap, 0), COUNT - 1);
}

TEST(bits_of_a_word_are_counted)
{
	assert_int_equal(bits_count(0), 0);
	assert_int_equal(bits_count(UINT64_MAX), 64);
	assert_int_equal(bits_count(UINT64_C(0x8000000180000001)), 4);
	for (unsigned int i = 0; i < 64; i++)
		assert_int_equal(bits_count(UINT64_MAX >> i), 64 - i);
}

TEST(sets_are_joined_cut_and_taken_away)
{
	_cleanup_(bitmap_deinit) struct bitmap left = BITMAP(1, 70, 199);
	_cleanup_(bitmap_deinit) struct bitmap right = BITMAP(2, 70, 198);
	_cleanup_(bitmap_deinit) struct bitmap result = BITMAP(100);

	assert_true(bitmap_meets(&left, &right));
	assert_false(bitmap_meets(&left, &result));
	bitmap_copy(&result, &left);
	ASSERT_BITS(&result, 1, 70, 199);
	bitmap_or(&result, &right);
	ASSERT_BITS(&result, 1, 2, 70, 198, 199);
	bitmap_minus(&result, &left);
	ASSERT_BITS(&result, 2, 198);
	bitmap_or(&result, &left);
	bitmap_and(&result, &right);
	ASSERT_BITS(&result, 2, 70, 198);
}

TEST(bitmap_without_bits_is_harmless)
{
	_cleanup_(bitmap_deinit) struct bitmap bitmap, other;

	assert_no_error(bitmap_init(&bitmap, 0, &account));
	assert_no_error(bitmap_init(&other, 0, &account));
	bitmap_or(&bitmap, &other);
	assert_int_equal(bitmap_weight(&bitmap), 0);
	assert_int_equal(bitmap_next(&bitmap, 0), 0);
}

TEST(its_memory_is_counted_and_given_back)
{
	struct bitmap bitmap = BITMAP(7);

	assert_true(account.used >= COUNT / 8);
	bitmap_deinit(&bitmap);
	assert_int_equal(account.used, 0);
	bitmap_deinit(&bitmap);
	assert_int_equal(account.used, 0);
}
