#include "analyzer/heap/index.h"
#include "analyzer/heap/sink.h"

#include "tests/assertions.h"

static struct memory_account account;

static struct block_sink *new_sink(void)
{
	struct block_sink *sink;

	assert_no_error(block_sink_create(&account, &sink));
	return sink;
}

static void begin(struct block_sink *sink, uint64_t start, uint64_t end)
{
	assert_no_error(block_sink_region(sink, start, end, 0));
}

static void add(struct block_sink *sink, uint64_t start, uint64_t size,
		enum block_state block_state)
{
	assert_no_error(block_sink_add(sink, (struct block){ start, size, block_state }));
}

TEST(state_can_be_put_right_afterwards)
{
	_cleanup_(block_sink_destroy) struct block_sink *sink = new_sink();
	_cleanup_(allocation_index_destroy) struct allocation_index *index = NULL;

	begin(sink, 0x2000, 0x3000);
	add(sink, 0x2010, 24, BLOCK_USED);
	add(sink, 0x2030, 24, BLOCK_USED);
	begin(sink, 0x1000, 0x2000);
	add(sink, 0x1010, 24, BLOCK_FREE);
	assert_int_equal(block_sink_count(sink), 3);
	assert_true(block_sink_restate(sink, 0x2030, BLOCK_CACHED));
	assert_true(block_sink_restate(sink, 0x1010, BLOCK_USED));
	assert_false(block_sink_restate(sink, 0x2020, BLOCK_FREE));
	assert_false(block_sink_restate(sink, 0x2038, BLOCK_FREE));
	assert_false(block_sink_restate(sink, 0x2000, BLOCK_FREE));
	assert_false(block_sink_restate(sink, 0x5000, BLOCK_FREE));
	assert_no_error(allocation_index_create(sink, &index));
	assert_int_equal(allocation_state(index, 0), BLOCK_USED);
	assert_int_equal(allocation_state(index, 1), BLOCK_USED);
	assert_int_equal(allocation_state(index, 2), BLOCK_CACHED);
}

TEST(batch_is_as_one_block_after_the_other)
{
	enum { BEFORE = 3, COUNT = 200 };
	_cleanup_(block_sink_destroy) struct block_sink *sink = new_sink();
	struct extent extents[COUNT];
	uint64_t used[COUNT / 64 + 1] = { 0 }, base;
	struct block block;

	begin(sink, 0x10000, 0x20000);
	for (uint64_t i = 0; i < BEFORE; i++)
		add(sink, 0x10010 + 0x20 * i, 24, BLOCK_CACHED);
	assert_true(block_sink_base(sink, 0x11000, &base));
	for (uint64_t i = 0; i < COUNT; i++) {
		extents[i].start = (uint32_t)((0x11000 + 0x20 * i - base) / 16);
		extents[i].size = 24;
		if (i % 3 != 1)
			used[i / 64] |= UINT64_C(1) << (i % 64);
	}
	assert_no_error(block_sink_add_many(sink, extents, used, COUNT));
	add(sink, 0x1f000, 40, BLOCK_FREE);
	assert_int_equal(block_sink_count(sink), BEFORE + COUNT + 1);
	for (uint64_t i = 0; i < COUNT; i++) {
		assert_true(block_sink_find(sink, 0x11000 + 0x20 * i, &block));
		assert_int_equal(block.size, 24);
		assert_int_equal(block.state, i % 3 != 1 ? BLOCK_USED : BLOCK_FREE);
	}
	assert_true(block_sink_find(sink, 0x10050, &block));
	assert_int_equal(block.state, BLOCK_CACHED);
	assert_true(block_sink_find(sink, 0x1f000, &block));
	assert_int_equal(block.state, BLOCK_FREE);
}

/* Blocks of all states, from start on; the last is large. */
static void add_row(struct block_sink *sink, uint64_t start)
{
	enum { COUNT = 100 };

	for (uint64_t i = 0; i < COUNT; i++)
		add(sink, start + 0x20 * i, 24,
		    i % 3 == 0	 ? BLOCK_USED
		    : i % 3 == 1 ? BLOCK_CACHED
				 : BLOCK_FREE);
	add(sink, start + 0x20 * COUNT, UINT64_C(5) << 30, BLOCK_USED);
}

static void assert_same(const struct block_sink *left, const struct block_sink *right)
{
	size_t extents = left->count * sizeof(struct extent);
	size_t bits = (left->count + 63) / 64 * sizeof(uint64_t);
	size_t large = left->large.count * sizeof(struct large_size);

	assert_int_equal(left->count, right->count);
	assert_memory_equal(left->extents.bytes, right->extents.bytes, extents);
	assert_memory_equal(left->used.bytes, right->used.bytes, bits);
	assert_memory_equal(left->cached.bytes, right->cached.bytes, bits);
	assert_int_equal(left->large.count, right->large.count);
	assert_memory_equal(left->large.items, right->large.items, large);
	assert_int_equal(left->regions.count, right->regions.count);
	for (size_t i = 0; i < left->regions.count; i++)
		assert_memory_equal(left->regions.items + i, right->regions.items + i,
				    sizeof(struct heap_region));
}

/* Near the region, behind a wide gap, and where extents come to their end. */
/* The bits of a row, and the states that they are. */
static void assert_row(uint64_t start, uint64_t size, size_t count)
{
	enum { WORDS = 4 };
	static const uint64_t used[WORDS] = { 0x123456789abcdef0, 0, UINT64_MAX, 0xff };
	static const uint64_t cached[WORDS] = { 0x0000000000000101, 0xf0f0, 0, 0x100 };
	_cleanup_(block_sink_destroy) struct block_sink *left = new_sink();
	_cleanup_(block_sink_destroy) struct block_sink *right = new_sink();

	begin(left, 0x10000, UINT64_C(1) << 44);
	begin(right, 0x10000, UINT64_C(1) << 44);
	add(left, 0x10000, 16, BLOCK_CACHED);
	add(right, 0x10000, 16, BLOCK_CACHED);
	assert_no_error(block_sink_add_row(left, start, size, used, cached, count));
	for (size_t i = 0; i < count; i++)
		add(right, start + i * size, size,
		    used[i / 64] >> i % 64 & 1	   ? BLOCK_USED
		    : cached[i / 64] >> i % 64 & 1 ? BLOCK_CACHED
						   : BLOCK_FREE);
	assert_same(left, right);
}

TEST(row_is_as_one_block_after_the_other)
{
	const uint64_t reach = UINT64_C(16) << 32;

	assert_row(0x10010, 48, 250);
	assert_row(0x10010, 16, 1);
	assert_row(0x10010, 16, 0);
	assert_row(0x4000000, 0x10000, 200);
	assert_row(0x10010, UINT64_C(17) << 20, 5);
	assert_row(0x10010, UINT64_C(5) << 30, 40);
	assert_row(0x10000 + reach - 0x1000, 0x100, 64);
}

TEST(piece_is_as_one_block_after_the_other)
{
	const uint64_t region = 0x10000, reach = UINT64_C(16) << 32;
	const uint64_t starts[] = { region + 0x1010, region + (UINT64_C(1) << 33),
				    region + (UINT64_C(1) << 33) + reach - 0x100 };
	_cleanup_(block_sink_destroy) struct block_sink *whole = new_sink();
	_cleanup_(block_sink_destroy) struct block_sink *joined = new_sink();
	_cleanup_(block_sink_destroy) struct block_sink *piece = new_sink();

	begin(whole, region, UINT64_MAX);
	begin(joined, region, UINT64_MAX);
	add(whole, region + 0x10, 24, BLOCK_USED);
	add(joined, region + 0x10, 24, BLOCK_USED);
	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		block_sink_clear(piece);
		assert_int_equal(block_sink_count(piece), 0);
		begin(piece, starts[i] - 0x10, UINT64_MAX);
		add_row(piece, starts[i]);
		add_row(whole, starts[i]);
		assert_no_error(block_sink_join(joined, piece));
		assert_same(whole, joined);
	}
	assert_true(whole->regions.count > 2);
}

/* Regions come in any order, and two may claim the same memory. */
TEST(order_of_regions_changes_no_answer)
{
	static const uint64_t starts[] = { 0x9000, 0x2000, 0x5000, 0x2000, 0x7000, 0x1000 };
	_cleanup_(block_sink_destroy) struct block_sink *sink = new_sink();
	struct block block[0x1000];
	bool found[0x1000];

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		begin(sink, starts[i], starts[i] + 0x1800 * (i % 3 + 1));
		add(sink, starts[i] + 0x10, 24 + i, BLOCK_USED);
		add(sink, starts[i] + 0x40 * (i + 1), 100 + i, BLOCK_FREE);
		add(sink, starts[i] + 0x1000, 200 + i, BLOCK_CACHED);
	}
	for (uint64_t i = 0; i < 0x1000; i++)
		found[i] = block_sink_find(sink, 16 * i, &block[i]);
	assert_no_error(block_sink_order(sink));
	for (uint64_t i = 0; i < 0x1000; i++) {
		struct block again;

		assert_int_equal(block_sink_find(sink, 16 * i, &again), found[i]);
		if (!found[i])
			continue;
		assert_int_equal(again.size, block[i].size);
		assert_int_equal(again.state, block[i].state);
	}
	begin(sink, 0x20000, 0x30000);
	add(sink, 0x20010, 24, BLOCK_USED);
	assert_true(block_sink_find(sink, 0x20010, &block[0]));
}

/* Behind a wide gap, a region begins; extents reach only so far. */
TEST(batch_does_not_begin_a_region)
{
	const uint64_t start = 0x10000, far = start + (UINT64_C(16) << 32);
	_cleanup_(block_sink_destroy) struct block_sink *sink = new_sink();
	uint64_t base;

	begin(sink, start, UINT64_MAX);
	assert_false(block_sink_base(sink, far, &base));
	assert_false(block_sink_base(sink, far - 0x1000, &base));
	assert_true(block_sink_base(sink, far / 2, &base));
	assert_int_equal(base, start);
	add(sink, start, 24, BLOCK_USED);
	assert_false(block_sink_base(sink, far / 2, &base));
}

TEST(block_below_an_address_is_the_nearest_of_all)
{
	_cleanup_(block_sink_destroy) struct block_sink *sink = new_sink();
	struct block block;

	begin(sink, 0x3000, 0x4000);
	add(sink, 0x3010, 24, BLOCK_USED);
	add(sink, 0x3030, 40, BLOCK_USED);
	begin(sink, 0x1000, 0x2000);
	add(sink, 0x1010, 24, BLOCK_USED);
	begin(sink, 0x2000, 0x3000);
	assert_false(block_sink_below(sink, 0x1010, &block));
	assert_true(block_sink_below(sink, 0x1011, &block));
	assert_int_equal(block.start, 0x1010);
	assert_true(block_sink_below(sink, 0x3010, &block));
	assert_int_equal(block.start, 0x1010);
	assert_int_equal(block.size, 24);
	assert_true(block_sink_below(sink, 0x3030, &block));
	assert_int_equal(block.start, 0x3010);
	assert_true(block_sink_below(sink, UINT64_MAX, &block));
	assert_int_equal(block.start, 0x3030);
	assert_int_equal(block.size, 40);
}

TEST(size_of_a_large_block_below_is_exact)
{
	const uint64_t start = 0x10000000000, size = 5ull << 30;
	_cleanup_(block_sink_destroy) struct block_sink *sink = new_sink();
	struct block block;

	begin(sink, start, start + 2 * size);
	add(sink, start + 16, size, BLOCK_USED);
	assert_true(block_sink_below(sink, start + size + 0x100, &block));
	assert_int_equal(block.size, size);
}

struct visited {
	uint64_t starts[8];
	size_t count, most;
};

static bool visit(void *data, struct block block)
{
	struct visited *visited = data;

	visited->starts[visited->count++] = block.start;
	return visited->count < visited->most;
}

TEST(visit_meets_only_what_is_used_from_the_first_on)
{
	_cleanup_(block_sink_destroy) struct block_sink *sink = new_sink();
	struct visited visited = { .most = 8 };

	begin(sink, 0x1000, 0x2000);
	add(sink, 0x1010, 24, BLOCK_USED);
	add(sink, 0x1030, 24, BLOCK_USED);
	add(sink, 0x1050, 24, BLOCK_CACHED);
	begin(sink, 0x3000, 0x4000);
	add(sink, 0x3010, 24, BLOCK_FREE);
	add(sink, 0x3030, 24, BLOCK_USED);
	block_sink_visit_used(sink, 1, visit, &visited);
	assert_int_equal(visited.count, 2);
	assert_int_equal(visited.starts[0], 0x1030);
	assert_int_equal(visited.starts[1], 0x3030);
	visited = (struct visited){ .most = 1 };
	block_sink_visit_used(sink, 0, visit, &visited);
	assert_int_equal(visited.count, 1);
	assert_int_equal(visited.starts[0], 0x1010);
}

TEST(region_that_was_cut_claims_no_more_than_is_left)
{
	_cleanup_(block_sink_destroy) struct block_sink *sink = new_sink();
	_cleanup_(allocation_index_destroy) struct allocation_index *index = NULL;

	begin(sink, 0x1000, 0x9000);
	add(sink, 0x1010, 24, BLOCK_USED);
	block_sink_cut(sink, 0x1800);
	assert_no_error(allocation_index_create(sink, &index));
	assert_int_equal(heap_region(index, 0)->end, 0x1800);
	assert_int_equal(heap_claim(index, 0).end, 0x1800);
	assert_int_equal(allocation_find(index, 0x1010), 0);
}

TEST(claims_and_regions_leave_out_what_is_protected_unless_a_block_holds_it)
{
	static const struct memory_range protected[] = { { 0x1800, 0x1900 },
							 { 0x2040, 0x2050 },
							 { 0x2f00, 0x3100 } };
	_cleanup_(block_sink_destroy) struct block_sink *sink = new_sink();
	_cleanup_(allocation_index_destroy) struct allocation_index *index = NULL;

	block_sink_protect(sink, protected, 3);
	begin(sink, 0x4000, 0x5000);
	begin(sink, 0x2000, 0x3000);
	add(sink, 0x2010, 0x100, BLOCK_USED);
	assert_no_error(block_sink_claim(sink, 0x1000, 0x2000));
	assert_no_error(block_sink_claim(sink, 0x1810, 0x18f0));
	assert_no_error(allocation_index_create(sink, &index));
	assert_int_equal(heap_claim_count(index), 3);
	assert_int_equal(heap_claim(index, 0).start, 0x1000);
	assert_int_equal(heap_claim(index, 0).end, 0x1800);
	assert_int_equal(heap_claim(index, 1).start, 0x1900);
	assert_int_equal(heap_claim(index, 1).end, 0x2f00);
	assert_int_equal(heap_claim(index, 2).start, 0x4000);
}

TEST(region_that_was_cut_at_its_start_is_left_out_when_regions_are_sorted)
{
	_cleanup_(block_sink_destroy) struct block_sink *sink = new_sink();
	_cleanup_(allocation_index_destroy) struct allocation_index *index = NULL;

	begin(sink, 0x3000, 0x4000);
	add(sink, 0x3010, 24, BLOCK_USED);
	begin(sink, 0x1000, 0x2000);
	block_sink_cut(sink, 0x1000);
	assert_no_error(allocation_index_create(sink, &index));
	assert_int_equal(allocation_count(index), 1);
	assert_int_equal(allocation_find(index, 0x3010), 0);
}

TEST(what_has_no_place_in_its_region_is_left_out)
{
	_cleanup_(block_sink_destroy) struct block_sink *sink = new_sink();
	_cleanup_(allocation_index_destroy) struct allocation_index *index = NULL;
	const uint64_t used[2] = { UINT64_MAX, UINT64_MAX };

	add(sink, 0x1010, 24, BLOCK_USED); /* without a region */
	begin(sink, 0x1000, 0x2000);
	add(sink, 0x1100, 0x40, BLOCK_USED);
	add(sink, 0x1100, 0x40, BLOCK_USED); /* the same again, */
	add(sink, 0x1130, 24, BLOCK_USED);   /* within, */
	add(sink, 0x1010, 24, BLOCK_USED);   /* before, */
	add(sink, 0x1148, 24, BLOCK_USED);   /* askew, */
	add(sink, 0x0ff0, 24, BLOCK_USED);   /* below the region, */
	add(sink, 0x1ff0, 24, BLOCK_USED);   /* across its end, */
	add(sink, 0x3000, 24, BLOCK_USED);   /* and above it */
	assert_no_error(block_sink_add_row(sink, 0x1800, 0x20, used, NULL, 65));
	assert_no_error(block_sink_add_row(sink, 0x1800, 0x28, used, NULL, 2));
	assert_no_error(block_sink_add_row(sink, 0x1120, 0x20, used, NULL, 2));
	assert_no_error(block_sink_add_row(sink, 0x1800, UINT64_MAX - 15, used, NULL, 2));
	assert_no_error(block_sink_add_row(sink, 0x1800, 0x20, used, NULL, 64));
	assert_int_equal(block_sink_count(sink), 65);
	assert_int_equal(sink->refused.count, 12);
	assert_int_equal(sink->refused.first, 0x1010);
	begin(sink, 0x5000, 0x4000); /* none of its blocks counts, */
	add(sink, 0x1f00, 24, BLOCK_USED);
	block_sink_cut(sink, 0x4800); /* nor what it cuts */
	begin(sink, 0x6008, 0x7000);
	assert_no_error(block_sink_claim(sink, 0x9000, 0x8000));
	assert_int_equal(sink->refused.count, 16);
	begin(sink, 0x7000, 0x8000);
	add(sink, 0x7010, 24, BLOCK_FREE);
	assert_no_error(allocation_index_create(sink, &index));
	assert_int_equal(allocation_count(index), 66);
	assert_int_equal(heap_region_count(index), 2);
	assert_int_equal(heap_region(index, 0)->end, 0x2000);
	assert_int_equal(allocation_find(index, 0x1120), 0);
	assert_int_equal(allocation_find(index, 0x7010), 65);
}

TEST(stretches_in_a_row_are_one_region)
{
	_cleanup_(block_sink_destroy) struct block_sink *sink = new_sink();
	_cleanup_(allocation_index_destroy) struct allocation_index *index = NULL;

	assert_no_error(block_sink_stretch(sink, 0x1000, 0x2000, 1));
	add(sink, 0x1010, 24, BLOCK_USED);
	assert_no_error(block_sink_stretch(sink, 0x1800, 0x1900, 1)); /* within */
	assert_no_error(block_sink_stretch(sink, 0x2000, 0x3000, 1));
	add(sink, 0x2010, 24, BLOCK_USED);
	assert_no_error(block_sink_stretch(sink, 0x3000, 0x4000, 2)); /* of another arena */
	add(sink, 0x3010, 24, BLOCK_USED);
	assert_no_error(block_sink_stretch(sink, 0x5000, 0x6000, 2)); /* behind a gap */
	add(sink, 0x5010, 24, BLOCK_USED);
	assert_no_error(allocation_index_create(sink, &index));
	assert_int_equal(allocation_count(index), 4);
	assert_int_equal(heap_region_count(index), 3);
	assert_int_equal(heap_region(index, 0)->end, 0x3000);
	assert_int_equal(heap_region(index, 1)->end, 0x4000);
	assert_int_equal(heap_region(index, 2)->start, 0x5000);
}
