/*
 * The index against a model that is too simple to be wrong: a list of all blocks, looked through
 * from its beginning.
 */
#include "analyzer/heap/index_parts.h"

#include "tests/assertions.h"
#include "tests/random.h"

enum { REGIONS = 1500, MOST_BLOCKS = 20 * REGIONS };

struct model {
	struct block blocks[MOST_BLOCKS]; /* by address */
	size_t count;
	uint64_t starts[REGIONS], ends[REGIONS];
	unsigned int units[REGIONS]; /* blocks start at multiples */
	size_t firsts[REGIONS + 1];  /* of the region's blocks */
};

static struct memory_account account;
static struct model model;

/* The size of a block that leaves gap bytes up to the next unit but some. */
static uint64_t size_before_gap(uint64_t gap, unsigned int unit)
{
	return unit * (2 + random_below(random_below(8) ? 8 : 900)) - gap;
}

/* Fill the region with blocks of one gap between any two of them, or nearly any. */
static uint64_t fill_evenly(uint64_t start, unsigned int unit)
{
	uint64_t count = random_below(40), gap = random_below(unit + 1), end = start;
	bool is_even = random_below(2);

	for (uint64_t i = 0; i < count && model.count < MOST_BLOCKS; i++) {
		struct block *block = &model.blocks[model.count++];

		block->start = end;
		block->size = size_before_gap(gap, unit);
		block->state = (enum block_state)random_below(3);
		end = block->start + block->size + gap;
		if (!is_even && random_below(12) == 0)
			end += unit * random_below(random_below(4) ? 8 : 3000);
	}
	return end + unit * (1 + random_below(3));
}

/* Fill the region from start on; returns its end. */
static uint64_t fill_region(uint64_t start, bool large, unsigned int unit)
{
	uint64_t count = random_below(random_below(4) ? 4 : 40), end = start;

	if (large) /* ranges that no 32-bit number holds */
		count = 1 + random_below(3);
	for (uint64_t i = 0; i < count && model.count < MOST_BLOCKS; i++) {
		struct block *block = &model.blocks[model.count++];

		block->start = end + unit * random_below(4);
		block->size = 1 + random_below(random_below(20) ? 100 : 20000);
		if (large)
			block->size += random_below(3) << 32;
		block->state = (enum block_state)random_below(3);
		end = (block->start + block->size + unit - 1) / unit * unit;
	}
	return end + unit * (1 + random_below(600));
}

static void fill_model(void)
{
	uint64_t address = 0x10000;

	model.count = 0;
	for (size_t i = 0; i < REGIONS; i++) {
		address += random_below(3) << 12;
		if (random_below(200) == 0)
			address += 1ull << 40;
		model.units[i] = random_below(4) ? 16 : 8U << random_below(4);
		address = (address + model.units[i] - 1) / model.units[i] * model.units[i];
		model.starts[i] = address;
		model.firsts[i] = model.count;
		address = random_below(3)
				  ? fill_region(address, random_below(100) == 0, model.units[i])
				  : fill_evenly(address, model.units[i]);
		model.ends[i] = address;
	}
	model.firsts[REGIONS] = model.count;
}

/* Report the regions to a sink, shuffled or as they are. */
static struct allocation_index *make_index(bool shuffled)
{
	_cleanup_(block_sink_destroy) struct block_sink *sink = NULL;
	struct allocation_index *index;
	size_t order[REGIONS];

	for (size_t i = 0; i < REGIONS; i++) {
		size_t other = shuffled ? random_below(i + 1) : i;

		order[i] = i;
		order[i] = order[other];
		order[other] = i;
	}
	assert_no_error(block_sink_create(&account, &sink));
	for (size_t i = 0; i < REGIONS; i++) {
		size_t region = order[i];

		block_sink_align(sink, model.units[region]);
		assert_no_error(
			block_sink_region(sink, model.starts[region], model.ends[region], 0));
		for (size_t j = model.firsts[region]; j < model.firsts[region + 1]; j++)
			assert_no_error(block_sink_add(sink, model.blocks[j]));
	}
	assert_no_error(allocation_index_create(sink, &index));
	return index;
}

static allocation_id find_in_model(uint64_t address)
{
	for (size_t i = 0; i < model.count; i++)
		if (address >= model.blocks[i].start &&
		    address - model.blocks[i].start < model.blocks[i].size)
			return (allocation_id)i;
	return NO_ALLOCATION;
}

/* Near a block or a region, or anywhere. */
static uint64_t random_address(void)
{
	const struct block *block = &model.blocks[random_below(model.count)];

	switch (random_below(6)) {
	case 0:
		return block->start + block->size - random_below(3);
	case 1:
		return block->start - random_below(32);
	case 2:
		return block->start + random_below(block->size + 1);
	case 3:
		return model.ends[random_below(REGIONS)] - random_below(3);
	case 4:
		return model.starts[random_below(REGIONS)] - random_below(3);
	default:
		return random_below(UINT32_MAX) << random_below(32);
	}
}

static void assert_allocations(const struct allocation_index *index)
{
	size_t hint = 0;

	assert_int_equal(allocation_count(index), model.count);
	for (allocation_id id = 0; id < model.count; id++) {
		/* In order and out of it. */
		allocation_id other = (allocation_id)random_below(model.count);
		const struct block *block = &model.blocks[id];
		struct memory_range range;

		assert_int_equal(allocation_start(index, id), block->start);
		assert_int_equal(allocation_size(index, id), block->size);
		assert_int_equal(allocation_state(index, id), block->state);
		range = allocation_range_near(index, id, &hint);
		assert_int_equal(range.start, block->start);
		assert_int_equal(range.end, block->start + block->size);
		if (random_below(8) == 0)
			allocation_range_near(index, other, &hint);
	}
}

/* True if an allocation starts in the unit behind that of the address. */
static bool is_header(const struct allocation_index *index, uint64_t address)
{
	uint64_t unit = UINT64_C(1) << heap_region_find(index, address)->shift;
	uint64_t start = address / unit * unit + unit;
	allocation_id id = find_in_model(start);

	return id != NO_ALLOCATION && model.blocks[id].start == start &&
	       heap_region_find(index, start) == heap_region_find(index, address);
}

static void assert_targets(const struct allocation_index *index, const uint64_t *addresses,
			   size_t count, const allocation_id *expected)
{
	struct lookup lookups[MOST_ADDRESSES];
	allocation_id found[MOST_ADDRESSES];
	size_t hint = 0;
	uint64_t headers;

	lookups_begin(index, addresses, count, &hint, lookups);
	headers = index->lookups_end(index, lookups, count, false, found);

	for (size_t i = 0; i < count; i++) {
		assert_int_equal(found[i], expected[i]);
		if (found[i] != NO_ALLOCATION && is_header(index, addresses[i]))
			assert_true(headers >> i & 1);
	}
}

static void assert_lookups(const struct allocation_index *index)
{
	struct heap_bounds bounds = allocation_bounds(index);
	size_t hint = 0;

	for (int i = 0; i < 40; i++) {
		uint64_t addresses[MOST_ADDRESSES];
		allocation_id found[MOST_ADDRESSES];
		size_t count = random_below(MOST_ADDRESSES + 1);

		for (size_t j = 0; j < count; j++)
			addresses[j] = random_address();
		allocation_find_many(index, addresses, count, &hint, found);
		for (size_t j = 0; j < count; j++) {
			allocation_id expected = find_in_model(addresses[j]);

			assert_int_equal(found[j], expected);
			assert_int_equal(allocation_find(index, addresses[j]), expected);
			if (expected == NO_ALLOCATION)
				continue;
			assert_int_equal(
				allocation_range_around(index, expected, addresses[j]).start,
				model.blocks[expected].start);
			assert_true(heap_bounds_hold(&bounds, addresses[j]));
		}
		assert_targets(index, addresses, count, found);
	}
}

TEST(index_agrees_with_a_list_of_all_blocks)
{
	for (seed = 1; seed < 10000000; seed *= 1000) {
		uint64_t next = seed;
		struct allocation_index *index;

		fill_model();
		for (int shuffled = 0; shuffled < 2; shuffled++) {
			index = make_index(shuffled);
			assert_allocations(index);
			for (unsigned int i = 0; lookups_end_kind(i); i++) {
				index->lookups_end = lookups_end_kind(i);
				assert_lookups(index);
			}
			allocation_index_destroy(index);
			assert_int_equal(account.used, 0);
		}
		seed = next;
	}
}
