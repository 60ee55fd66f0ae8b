#include "analyzer/heap/index.h"

#include "tests/assertions.h"

static struct memory_account account;

struct piece {
	uint64_t start, size; /* of a block; size 0: a region's start and end */
	uint64_t end;
};

#define REGION(start_, end_)                     \
	{                                        \
		.start = (start_), .end = (end_) \
	}
#define BLOCK(start_, size_)                       \
	{                                          \
		.start = (start_), .size = (size_) \
	}
#define INDEX(...) index_of((const struct piece[]){ __VA_ARGS__, { 0 } })

/* The index of used blocks, each behind the region that it is in. */
static struct allocation_index *index_of(const struct piece *pieces)
{
	_cleanup_(block_sink_destroy) struct block_sink *sink = NULL;
	struct allocation_index *index;

	assert_no_error(block_sink_create(&account, &sink));
	for (; pieces->start; pieces++) {
		struct block block = { pieces->start, pieces->size, BLOCK_USED };

		if (pieces->end)
			assert_no_error(block_sink_region(sink, pieces->start, pieces->end, 0));
		else
			assert_no_error(block_sink_add(sink, block));
	}
	assert_no_error(allocation_index_create(sink, &index));
	assert_int_equal(block_sink_count(sink), 0);
	return index;
}

TEST(address_is_found_only_inside_its_block)
{
	_cleanup_(allocation_index_destroy) struct allocation_index *index =
		INDEX(REGION(0x2000, 0x2100), BLOCK(0x2000, 16), REGION(0x1000, 0x1100),
		      BLOCK(0x1000, 32));

	assert_int_equal(allocation_count(index), 2);
	assert_int_equal(allocation_find(index, 0x0fff), NO_ALLOCATION);
	assert_int_equal(allocation_find(index, 0x1000), 0);
	assert_int_equal(allocation_find(index, 0x1011), 0);
	assert_int_equal(allocation_find(index, 0x101f), 0);
	assert_int_equal(allocation_find(index, 0x1020), NO_ALLOCATION);
	assert_int_equal(allocation_find(index, 0x1fff), NO_ALLOCATION);
	assert_int_equal(allocation_find(index, 0x200f), 1);
	assert_int_equal(allocation_find(index, 0x2010), NO_ALLOCATION);
	assert_int_equal(allocation_find(index, UINT64_MAX), NO_ALLOCATION);
	assert_int_equal(allocation_find(index, 0), NO_ALLOCATION);
}

TEST(size_field_between_neighbours_belongs_to_nobody)
{
	_cleanup_(allocation_index_destroy) struct allocation_index *index =
		INDEX(REGION(0x1000, 0x2000), BLOCK(0x1010, 24), BLOCK(0x1030, 24),
		      BLOCK(0x1050, 0x1000 - 0x50));

	for (uint64_t address = 0x1000; address < 0x1010; address++)
		assert_int_equal(allocation_find(index, address), NO_ALLOCATION);
	assert_int_equal(allocation_find(index, 0x1010), 0);
	assert_int_equal(allocation_find(index, 0x1027), 0);
	for (uint64_t address = 0x1028; address < 0x1030; address++)
		assert_int_equal(allocation_find(index, address), NO_ALLOCATION);
	assert_int_equal(allocation_find(index, 0x1030), 1);
	assert_int_equal(allocation_find(index, 0x1048), NO_ALLOCATION);
	assert_int_equal(allocation_find(index, 0x1fff), 2);
}

TEST(allocations_are_numbered_by_address)
{
	_cleanup_(allocation_index_destroy) struct allocation_index *index =
		INDEX(REGION(0x9000, 0xa000), BLOCK(0x9010, 24), BLOCK(0x9030, 40),
		      REGION(0x1000, 0x2000), REGION(0x5000, 0x6000), BLOCK(0x5010, 8));

	assert_int_equal(allocation_count(index), 3);
	assert_int_equal(allocation_start(index, 0), 0x5010);
	assert_int_equal(allocation_size(index, 0), 8);
	assert_int_equal(allocation_start(index, 1), 0x9010);
	assert_int_equal(allocation_start(index, 2), 0x9030);
	assert_int_equal(allocation_size(index, 2), 40);
	assert_int_equal(heap_region_count(index), 3);
	assert_int_equal(heap_region(index, 0)->start, 0x1000);
	assert_int_equal(heap_region(index, 2)->first, 1);
	assert_int_equal(heap_region(index, 2)->count, 2);
}

TEST(region_that_is_one_allocation_is_found)
{
	_cleanup_(allocation_index_destroy) struct allocation_index *index =
		INDEX(REGION(0x100000, 0x200000), BLOCK(0x100010, 0xffff0),
		      REGION(0x300000, 0x400000), BLOCK(0x380010, 0x7fff0));

	assert_int_equal(allocation_find(index, 0x10000f), NO_ALLOCATION);
	assert_int_equal(allocation_find(index, 0x100010), 0);
	assert_int_equal(allocation_find(index, 0x1fffff), 0);
	assert_int_equal(allocation_find(index, 0x200000), NO_ALLOCATION);
	/* An aligned mapped chunk does not start with its mapping. */
	assert_int_equal(allocation_find(index, 0x300010), NO_ALLOCATION);
	assert_int_equal(allocation_find(index, 0x38000f), NO_ALLOCATION);
	assert_int_equal(allocation_find(index, 0x380010), 1);
	assert_int_equal(allocation_find(index, 0x3fffff), 1);
}

TEST(region_may_reach_farther_than_64_gib)
{
	const uint64_t start = 0x10000000000, far = start + (70ull << 30);
	_cleanup_(allocation_index_destroy) struct allocation_index *index =
		INDEX(REGION(start, far + 0x1000), BLOCK(start + 16, 0x100),
		      BLOCK(start + (64ull << 30) - 16, 0x100),
		      BLOCK(start + (64ull << 30) + 0x100, 0x100), BLOCK(far + 16, 0x100),
		      REGION(far + 0x1000, far + 0x2000), BLOCK(far + 0x1010, 8));

	assert_int_equal(allocation_count(index), 5);
	assert_int_equal(allocation_find(index, start + 16), 0);
	assert_int_equal(allocation_find(index, start + (64ull << 30)), 1);
	assert_int_equal(allocation_find(index, start + (64ull << 30) + 0xf0), NO_ALLOCATION);
	assert_int_equal(allocation_find(index, start + (64ull << 30) + 0x100), 2);
	assert_int_equal(allocation_find(index, far + 0x10f), 3);
	assert_int_equal(allocation_start(index, 3), far + 16);
	assert_int_equal(allocation_find(index, far + 0x110), NO_ALLOCATION);
	assert_int_equal(allocation_find(index, far + 0x1010), 4);
}

/* Also where the regions have to be brought into order first. */
TEST(sizes_of_4_gib_and_more_are_exact)
{
	const uint64_t gib = 1ull << 30, start = 0x10000000000;
	_cleanup_(allocation_index_destroy) struct allocation_index *index = INDEX(
		REGION(start + 40 * gib, start + 50 * gib), BLOCK(start + 40 * gib, 4 * gib - 1),
		BLOCK(start + 45 * gib, 5 * gib), REGION(start, start + 16 * gib),
		BLOCK(start, 4 * gib), BLOCK(start + 8 * gib, 4 * gib + 24));
	size_t hint = 0;

	assert_int_equal(allocation_size(index, 0), 4 * gib);
	assert_int_equal(allocation_size(index, 1), 4 * gib + 24);
	assert_int_equal(allocation_size(index, 2), 4 * gib - 1);
	assert_int_equal(allocation_size(index, 3), 5 * gib);
	assert_int_equal(allocation_range_near(index, 1, &hint).end, start + 12 * gib + 24);
	assert_int_equal(allocation_find(index, start + 4 * gib - 1), 0);
	assert_int_equal(allocation_find(index, start + 4 * gib), NO_ALLOCATION);
	assert_int_equal(allocation_find(index, start + 12 * gib + 23), 1);
	assert_int_equal(allocation_find(index, start + 12 * gib + 24), NO_ALLOCATION);
	assert_int_equal(allocation_find(index, start + 50 * gib - 1), 3);
}

TEST(states_are_kept_apart)
{
	_cleanup_(block_sink_destroy) struct block_sink *sink = NULL;
	_cleanup_(allocation_index_destroy) struct allocation_index *index = NULL;

	assert_no_error(block_sink_create(&account, &sink));
	for (uint64_t start = 0x9000; start > 0x7000; start -= 0x1000) {
		assert_no_error(block_sink_region(sink, start, start + 0x1000, 0));
		for (uint64_t i = 0; i < 3; i++)
			assert_no_error(block_sink_add(
				sink, (struct block){ start + 0x20 * i, 24, (enum block_state)i }));
	}
	assert_no_error(allocation_index_create(sink, &index));
	for (allocation_id id = 0; id < 6; id++) {
		assert_int_equal(allocation_state(index, id), id % 3);
		assert_int_equal(bitmap_get(allocation_used(index), id), id % 3 == BLOCK_USED);
		assert_int_equal(bitmap_get(allocation_cached(index), id), id % 3 == BLOCK_CACHED);
	}
}

TEST(traits_follow_their_blocks)
{
	_cleanup_(block_sink_destroy) struct block_sink *sink = NULL;
	_cleanup_(allocation_index_destroy) struct allocation_index *index = NULL;
	const struct bitmap *dead, *managed;
	struct block block;

	assert_no_error(block_sink_create(&account, &sink));
	assert_no_error(block_sink_region(sink, 0x100000, 0x200000, 0));
	for (uint64_t i = 0; i < 100; i++) {
		block = (struct block){ 0x100000 + 32 * i, 31, BLOCK_USED, TRAIT_MANAGED };
		if (i == 70) {
			block.traits |= TRAIT_DEAD;
			block.state = BLOCK_FREE;
		}
		assert_no_error(block_sink_add(sink, block));
	}
	assert_true(block_sink_find(sink, 0x100000 + UINT64_C(32) * 70, &block));
	assert_int_equal(block.traits, TRAIT_MANAGED | TRAIT_DEAD);
	/* A region below: all are numbered anew. */
	assert_no_error(block_sink_region(sink, 0x1000, 0x2000, 0));
	block = (struct block){ 0x1010, 24, BLOCK_USED, 0 };
	assert_no_error(block_sink_add(sink, block));
	assert_no_error(allocation_index_create(sink, &index));

	managed = allocation_having(index, TRAIT_MANAGED);
	dead = allocation_having(index, TRAIT_DEAD);
	assert_non_null(managed);
	assert_non_null(dead);
	assert_int_equal(managed->count, 101);
	assert_int_equal(bitmap_weight(managed), 100);
	assert_false(bitmap_get(managed, 0));
	assert_int_equal(bitmap_weight(dead), 1);
	assert_true(bitmap_get(dead, 71));
	assert_null(allocation_having(index, TRAIT_POINTERLESS));
}

TEST(without_traits_there_are_no_bitmaps)
{
	_cleanup_(allocation_index_destroy) struct allocation_index *index =
		INDEX(REGION(0x1000, 0x2000), BLOCK(0x1010, 24));

	assert_null(allocation_having(index, TRAIT_POINTERLESS));
	assert_null(allocation_having(index, TRAIT_COLLECTABLE));
	assert_null(allocation_having(index, TRAIT_MANAGED));
	assert_null(allocation_having(index, TRAIT_DEAD));
}

TEST(claims_are_joined_with_each_other_and_the_regions)
{
	_cleanup_(block_sink_destroy) struct block_sink *sink = NULL;
	_cleanup_(allocation_index_destroy) struct allocation_index *index = NULL;

	assert_no_error(block_sink_create(&account, &sink));
	assert_no_error(block_sink_claim(sink, 0x9000, 0x9800));
	assert_no_error(block_sink_region(sink, 0x5000, 0x6000, 0));
	assert_no_error(block_sink_claim(sink, 0x4800, 0x5000));
	assert_no_error(block_sink_claim(sink, 0x9100, 0x9200));
	assert_no_error(block_sink_claim(sink, 0x6010, 0x6020));
	assert_no_error(block_sink_region(sink, 0x9800, 0xa000, 0));
	assert_no_error(allocation_index_create(sink, &index));
	assert_int_equal(heap_claim_count(index), 3);
	assert_int_equal(heap_claim(index, 0).start, 0x4800);
	assert_int_equal(heap_claim(index, 0).end, 0x6000);
	assert_int_equal(heap_claim(index, 1).start, 0x6010);
	assert_int_equal(heap_claim(index, 1).end, 0x6020);
	assert_int_equal(heap_claim(index, 2).start, 0x9000);
	assert_int_equal(heap_claim(index, 2).end, 0xa000);
	assert_int_equal(heap_claim_above(index, 0x1000), 0);
	assert_int_equal(heap_claim_above(index, 0x5fff), 0);
	assert_int_equal(heap_claim_above(index, 0x6000), 1);
	assert_int_equal(heap_claim_above(index, 0x9fff), 2);
	assert_int_equal(heap_claim_above(index, 0xa000), 3);
}

TEST(region_of_an_address_is_found)
{
	_cleanup_(allocation_index_destroy) struct allocation_index *index =
		INDEX(REGION(0x1000, 0x2000), REGION(0x3000, 0x4000));

	assert_null(heap_region_find(index, 0x0fff));
	assert_int_equal(heap_region_find(index, 0x1fff)->start, 0x1000);
	assert_null(heap_region_find(index, 0x2000));
	assert_int_equal(heap_region_find(index, 0x3000)->end, 0x4000);
	assert_null(heap_region_find(index, 0x4000));
}

TEST(tag_bits_of_an_address_are_not_looked_at)
{
	_cleanup_(allocation_index_destroy) struct allocation_index *index =
		INDEX(REGION(0x9000, 0xa000), BLOCK(0x9010, 24));
	const uint64_t tag = UINT64_C(0xb4) << 56;

	assert_int_equal(allocation_find(index, tag | 0x9018), NO_ALLOCATION);
	allocation_set_tag_bits(index, UINT64_C(0xff) << 56);
	assert_int_equal(allocation_find(index, tag | 0x9018), 0);
	assert_int_equal(allocation_find(index, 0x9018), 0);
	assert_int_equal(allocation_find(index, tag | 0x9028), NO_ALLOCATION);
	assert_int_equal(allocation_find(index, UINT64_C(1) << 55 | 0x9018), NO_ALLOCATION);
}

TEST(index_of_nothing_finds_nothing)
{
	_cleanup_(allocation_index_destroy) struct allocation_index *index = INDEX({ 0 });
	struct heap_bounds bounds = allocation_bounds(index);

	assert_int_equal(allocation_count(index), 0);
	assert_int_equal(allocation_find(index, 0x1000), NO_ALLOCATION);
	assert_null(heap_region_find(index, 0x1000));
	assert_false(heap_bounds_hold(&bounds, 0));
	assert_int_equal(heap_claim_count(index), 0);
}

TEST(its_memory_is_given_back)
{
	struct allocation_index *index = INDEX(REGION(0x9000, 0xa000), BLOCK(0x9010, 24),
					       BLOCK(0x9030, 40), REGION(0x1000, 0x2000));

	assert_true(account.used > 0);
	allocation_index_destroy(index);
	assert_int_equal(account.used, 0);
}
