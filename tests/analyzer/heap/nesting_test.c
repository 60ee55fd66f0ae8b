#include "analyzer/heap/nesting.h"

#include "tests/assertions.h"

enum { OUTER, INNER };

static struct memory_account account;

static void add_region(struct block_sink *sink, unsigned int unit, uint64_t start, uint64_t end,
		       arena_number arena)
{
	block_sink_align(sink, unit);
	assert_no_error(block_sink_region(sink, start, end, arena));
}

static void add(struct block_sink *sink, uint64_t start, uint64_t size, enum block_state state)
{
	assert_no_error(block_sink_add(sink, (struct block){ start, size, state }));
}

/* Three blocks of one heap; the middle one, used or free, may hold others. */
static struct block_sink *outer_sink(enum block_state state)
{
	struct block_sink *sink;

	assert_no_error(block_sink_create(&account, &sink));
	add_region(sink, 16, 0x1000, 0x2000, OUTER);
	add(sink, 0x1010, 0x18, BLOCK_USED);
	add(sink, 0x1030, 0x508, state);
	add(sink, 0x1540, 0x18, BLOCK_USED);
	return sink;
}

static struct allocation_index *resolve(struct block_sink *sink, struct nesting *nesting)
{
	static const arena_number firsts[] = { OUTER, INNER };
	struct allocation_index *index;

	nesting->blocks.memory.account = &account;
	assert_no_error(nesting_resolve(sink, firsts, 2, nesting));
	assert_no_error(allocation_index_create(sink, &index));
	return index;
}

static void assert_found(const struct allocation_index *index, uint64_t address, uint64_t start,
			 uint64_t size)
{
	allocation_id id = allocation_find(index, address);

	assert_int_not_equal(id, NO_ALLOCATION);
	assert_int_equal(allocation_start(index, id), start);
	assert_int_equal(allocation_size(index, id), size);
}

TEST(outer_block_gives_way_to_inner_regions)
{
	_cleanup_(block_sink_destroy) struct block_sink *sink = outer_sink(BLOCK_USED);
	_cleanup_(allocation_index_destroy) struct allocation_index *index = NULL;
	struct nesting nesting = { .blocks.count = 0 };

	add_region(sink, 8, 0x1100, 0x1118, INNER);
	add(sink, 0x1100, 8, BLOCK_USED);
	add(sink, 0x1108, 16, BLOCK_FREE);
	add_region(sink, 8, 0x1200, 0x1210, INNER);
	add(sink, 0x1208, 8, BLOCK_USED);
	index = resolve(sink, &nesting);
	assert_int_equal(allocation_count(index), 6);
	assert_found(index, 0x1010, 0x1010, 0x18);
	assert_found(index, 0x10ff, 0x1030, 0xd0);
	assert_found(index, 0x1107, 0x1100, 8);
	assert_found(index, 0x1117, 0x1108, 16);
	assert_found(index, 0x1208, 0x1208, 8);
	assert_found(index, 0x1540, 0x1540, 0x18);
	assert_int_equal(allocation_find(index, 0x1200), NO_ALLOCATION);
	assert_int_equal(allocation_find(index, 0x1300), NO_ALLOCATION);
	assert_int_equal(nesting.blocks.count, 1);
	assert_int_equal(nesting_find(&nesting, 0x1300)->start, 0x1030);
	assert_int_equal(nesting_find(&nesting, 0x1300)->arena, OUTER);
	assert_null(nesting_find(&nesting, 0x1540));
	array_release(&nesting.blocks);
}

TEST(outer_block_without_a_head_is_left_out)
{
	_cleanup_(block_sink_destroy) struct block_sink *sink = outer_sink(BLOCK_USED);
	_cleanup_(allocation_index_destroy) struct allocation_index *index = NULL;
	struct nesting nesting = { .blocks.count = 0 };

	add_region(sink, 8, 0x1030, 0x1538, INNER);
	add(sink, 0x1030, 0x508, BLOCK_USED);
	index = resolve(sink, &nesting);
	assert_int_equal(allocation_count(index), 3);
	assert_int_equal(heap_region_find(index, 0x1030)->arena, INNER);
	assert_int_equal(heap_region_find(index, 0x1540)->arena, OUTER);
	array_release(&nesting.blocks);
}

TEST(regions_in_no_single_used_block_cut_nothing)
{
	static const struct memory_range inner[] = {
		{ 0x1100, 0x1600 }, /* ends in another one */
		{ 0x1600, 0x1700 }, /* in none */
		{ 0x1f00, 0x2100 }, /* goes on behind the region */
	};

	for (size_t i = 0; i < 4; i++) {
		_cleanup_(block_sink_destroy) struct block_sink *sink =
			outer_sink(i < 3 ? BLOCK_USED : BLOCK_FREE);
		_cleanup_(allocation_index_destroy) struct allocation_index *index = NULL;
		struct nesting nesting = { .blocks.count = 0 };
		struct memory_range range =
			i < 3 ? inner[i] : (struct memory_range){ 0x1100, 0x1200 };

		add_region(sink, 16, range.start, range.end, INNER);
		add(sink, range.start, 16, BLOCK_USED);
		index = resolve(sink, &nesting);
		assert_int_equal(allocation_count(index), 4);
		assert_int_equal(nesting.blocks.count, 0);
		array_release(&nesting.blocks);
	}
}
