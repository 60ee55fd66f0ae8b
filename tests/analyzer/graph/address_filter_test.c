#include "analyzer/heap/address_filter.h"

#include "tests/assertions.h"

#include <string.h>

enum { BLOCKS = 32, BYTES = BLOCKS * FILTERED, COUNT = 40 };

static const uint64_t HEAP = 0x558123456780, LIBRARIES = 0x7f0011223340;

static struct memory_account account;

static uint64_t next(uint64_t *random)
{
	*random = *random * UINT64_C(6364136223846793005) + 1;
	return *random >> 16;
}

static uint64_t address_of(size_t number)
{
	return (number % 2 ? HEAP : LIBRARIES) + 0x1230 * number;
}

static void fill(struct address_filter *filter)
{
	assert_no_error(address_filter_init(filter, COUNT, &account));
	for (size_t i = 0; i < COUNT; i++)
		address_filter_add(filter, address_of(i));
}

TEST(all_that_was_added_may_be_there)
{
	struct address_filter filter;
	size_t others = 0;

	fill(&filter);
	for (size_t i = 0; i < COUNT; i++) {
		assert_true(address_filter_may_have(&filter, address_of(i)));
		others += address_filter_may_have(&filter, address_of(i) + 8);
	}
	assert_in_range(others, 0, COUNT / 2);
	assert_false(address_filter_may_have(&filter, 0));
	assert_false(address_filter_may_have(&filter, UINT64_MAX));
	address_filter_deinit(&filter);
}

TEST(empty_filter_has_nothing)
{
	struct address_filter filter;

	assert_no_error(address_filter_init(&filter, 0, &account));
	assert_false(address_filter_may_have(&filter, 0));
	assert_false(address_filter_may_have(&filter, UINT64_MAX));
	address_filter_deinit(&filter);
}

/* Noise, with an address at each distance from the beginning of a vector. */
static void make_bytes(uint8_t *bytes, uint64_t seed)
{
	for (size_t i = 0; i < BYTES + FILTER_AHEAD; i++)
		bytes[i] = seed ? (uint8_t)next(&seed) : 0;
	for (size_t i = 0; i + ADDRESS_BYTES <= BYTES; i += 37) {
		uint64_t address = address_of(i);

		memcpy(bytes + i, &address, ADDRESS_BYTES);
	}
}

TEST(addresses_are_seen_at_any_byte)
{
	uint8_t bytes[BYTES + FILTER_AHEAD];
	uint64_t masks[BLOCKS];
	struct address_filter filter;

	fill(&filter);
	for (size_t i = 0; i < BYTES; i++)
		address_filter_add(&filter, address_of(i));
	make_bytes(bytes, 1);
	address_filter_look(&filter, bytes, BLOCKS, masks);
	for (size_t i = 0; i + ADDRESS_BYTES <= BYTES; i += 37)
		assert_true(masks[i / FILTERED] >> (i % FILTERED) & 1);
	address_filter_deinit(&filter);
}

TEST(vectors_see_what_is_seen_without)
{
	uint8_t bytes[BYTES + FILTER_AHEAD];
	uint64_t masks[BLOCKS], plain[BLOCKS];
	struct address_filter filter;

	fill(&filter);
	for (uint64_t seed = 0; seed < 100; seed++) {
		make_bytes(bytes, seed);
		address_filter_look(&filter, bytes, BLOCKS, masks);
		address_filter_look_plainly(&filter, bytes, BLOCKS, plain);
		assert_memory_equal(masks, plain, sizeof(masks));
	}
	address_filter_deinit(&filter);
}

TEST(zeros_are_no_address)
{
	uint8_t bytes[FILTERED + FILTER_AHEAD] = { 0 };
	struct address_filter filter;
	uint64_t mask;

	fill(&filter);
	address_filter_look(&filter, bytes, 1, &mask);
	assert_int_equal(mask, 0);
	address_filter_deinit(&filter);
}
