/*
 * The tree here is made up: this file answers what is asked of it. Each allocation takes 10 bytes,
 * and its id is its position.
 *
 *	0 ┬─ 1 ─── 2
 *	  └─ 3 ┬─ 4
 *	       └─ 5
 *	6 ─── 7
 */
#include "analyzer/kinds/retained.h"

#include "tests/assertions.h"

enum { COUNT = 8, NONE = NO_GROUP };

static const size_t ends[COUNT] = { 6, 3, 3, 6, 5, 6, 8, 8 };

size_t dominators_count(const struct dominators *dominators)
{
	return COUNT;
}

allocation_id dominators_at(const struct dominators *dominators, size_t position)
{
	return (allocation_id)position;
}

size_t dominators_end(const struct dominators *dominators, size_t position)
{
	return ends[position];
}

uint64_t dominators_bytes(const struct dominators *dominators, size_t begin, size_t end)
{
	return 10 * (end - begin);
}

static void check(const uint32_t *groups, const uint32_t *merged, const uint64_t *expected,
		  size_t count)
{
	uint64_t bytes[COUNT] = { 0 };

	assert_no_error(retained_by_group(NULL, groups, merged, count, bytes));
	for (size_t i = 0; i < count; i++)
		assert_int_equal(bytes[i], expected[i]);
}

TEST(members_below_others_of_their_group_add_nothing)
{
	check((uint32_t[]){ 0, 0, 0, 0, 0, 0, 0, 0 }, NULL, (uint64_t[]){ 80 }, 1);
	check((uint32_t[]){ NONE, 0, 0, NONE, 0, NONE, NONE, 0 }, NULL,
	      (uint64_t[]){ 20 + 10 + 10 }, 1);
}

TEST(groups_count_what_they_share_each)
{
	check((uint32_t[]){ 0, 1, 0, 1, 2, 2, 1, 0 }, NULL,
	      (uint64_t[]){ 60 + 10, 20 + 30 + 20, 20 }, 3);
}

TEST(merged_groups_count_once)
{
	const uint32_t merged[] = { 0, 1, 1 };

	check((uint32_t[]){ 0, 1, 0, 1, 2, 2, 1, 0 }, merged, (uint64_t[]){ 60 + 10, 20 + 30 + 20 },
	      2);
	check((uint32_t[]){ 0, NONE, 0, NONE, 2, 1, NONE, 0 }, merged,
	      (uint64_t[]){ 60 + 10, 10 + 10 }, 2);
}
