#include "analyzer/base/ranks.h"

#include "tests/assertions.h"

static struct memory_account account;

TEST(members_are_numbered_in_order)
{
	static const size_t bits[] = { 0, 5, 63, 64, 130, 199 };
	_cleanup_(ranks_deinit) struct ranks ranks = { 0 };
	struct bitmap members;

	assert_no_error(bitmap_init(&members, 200, &account));
	for (size_t i = 0; i < 6; i++)
		bitmap_set(&members, bits[i]);
	assert_no_error(ranks_init(&ranks, &members, &account));
	assert_null(members.words);
	assert_int_equal(ranks.count, 6);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(ranks_of(&ranks, bits[i]), i);
}

TEST(nothing_has_no_ranks_and_memory_is_given_back)
{
	struct ranks ranks = { 0 };
	struct bitmap members;

	assert_no_error(bitmap_init(&members, 0, &account));
	assert_no_error(ranks_init(&ranks, &members, &account));
	assert_int_equal(ranks.count, 0);
	ranks_deinit(&ranks);
	assert_int_equal(account.used, 0);
}
