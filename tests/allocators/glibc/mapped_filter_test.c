#include "allocators/glibc/mapped_filter.h"

#include "tests/assertions.h"

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Words of which many are a bit beside what is looked for. */
static void fill(uint64_t *words, uint64_t address, uint64_t *seed)
{
	for (unsigned int i = 0; i < FILTERED_BYTES / 8; i += 2) {
		uint64_t random = next_random(seed);
		uint64_t place = address + UINT64_C(8) * i;

		words[i] = (random & ~UINT64_C(0xfff)) | place % PAGE;
		words[i + 1] = (random << 20 & ~UINT64_C(0xf)) | IS_MMAPPED;
		if (random % 3 != 0)
			words[i] ^= UINT64_C(1) << (random >> 8) % 64;
		if (random % 5 == 0)
			words[i + 1] ^= UINT64_C(1) << (random >> 16) % 64;
	}
}

TEST(all_ways_to_filter_give_the_same)
{
	uint64_t words[FILTERED_BYTES / 8], seed = 88172645463325252;
	size_t found = 0;

	for (unsigned int round = 0; round < 2000; round++) {
		uint64_t address = UINT64_C(0x7f0000000000) + FILTERED_BYTES * (uint64_t)round;
		const uint8_t *bytes = (const uint8_t *)words;
		uint64_t expected = 0;

		fill(words, address, &seed);
		for (unsigned int i = 0; i < FILTERED_BYTES; i += 16)
			if (mapped_filter_one(bytes + i, address + i))
				expected |= UINT64_C(1) << (i / 8);
		found += (size_t)__builtin_popcountll(expected);
		for (size_t i = 0; mapped_filter(i); i++)
			if (mapped_filter(i)->runs())
				assert_int_equal(mapped_filter(i)->filter(bytes, address),
						 expected);
	}
	assert_in_range(found, 1000, 2000 * 32 - 1000);
}

TEST(what_is_no_chunk_s_header_is_not_found)
{
	uint64_t words[FILTERED_BYTES / 8] = { 0 };

	for (size_t i = 0; mapped_filter(i); i++) {
		if (!mapped_filter(i)->runs())
			continue;
		words[1] = 0;
		assert_int_equal(mapped_filter(i)->filter((uint8_t *)words, PAGE), 0);
		words[1] = 0x2000 | IS_MMAPPED;
		assert_int_equal(mapped_filter(i)->filter((uint8_t *)words, PAGE), 1);
		/* It would not begin with a page. */
		assert_int_equal(mapped_filter(i)->filter((uint8_t *)words, FILTERED_BYTES), 0);
		words[1] |= PREV_INUSE;
		assert_int_equal(mapped_filter(i)->filter((uint8_t *)words, PAGE), 0);
	}
}
