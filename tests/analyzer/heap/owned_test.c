#include "analyzer/heap/allocator.h"

#include "tests/assertions.h"

TEST(ranges_are_joined_and_found_by_address)
{
	struct memory_range ranges[] = {
		{ 0x5000, 0x6000 }, { 0x1000, 0x2000 }, { 0x1800, 0x3000 },
		{ 0x6000, 0x7000 }, { 0x1900, 0x1a00 },
	};
	struct owned_memory owned = { .ranges.items = ranges };

	owned.ranges.count = memory_ranges_join(ranges, COUNT_OF(ranges));
	assert_int_equal(owned.ranges.count, 2);
	assert_int_equal(owned_memory_find(&owned, 0)->start, 0x1000);
	assert_int_equal(owned_memory_find(&owned, 0x1fff)->end, 0x3000);
	assert_int_equal(owned_memory_find(&owned, 0x3000)->start, 0x5000);
	assert_int_equal(owned_memory_find(&owned, 0x6fff)->end, 0x7000);
	assert_null(owned_memory_find(&owned, 0x7000));
}

TEST(nobody_owns_anything_at_first)
{
	const struct owned_memory owned = { .ranges.count = 0 };

	assert_null(owned_memory_find(&owned, 0x1000));
	assert_null(owned_memory_find(NULL, 0x1000));
}
