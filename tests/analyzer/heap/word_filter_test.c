#include "analyzer/heap/word_filter.h"

#include "tests/assertions.h"

static uint64_t seed = 1;

static uint64_t random_word(void)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return seed ^ seed >> 29;
}

/* The bit that the word must have, word by word. */
static uint64_t expected_mask(const uint8_t *bytes, const struct heap_bounds *bounds)
{
	uint64_t mask = 0;

	for (unsigned int i = 0; i < FILTER_WORDS; i++) {
		uint64_t word;

		memcpy(&word, bytes + 8 * (size_t)i, sizeof(word));
		word &= ~bounds->tag_bits;
		mask |= (uint64_t)(word - bounds->start[0] < bounds->size[0] ||
				   word - bounds->start[1] < bounds->size[1])
			<< i;
	}
	return mask;
}

/* A word at either side of a bound, or anything. */
static uint64_t likely_word(const struct heap_bounds *bounds)
{
	unsigned int range = random_word() % 2;
	uint64_t start = bounds->start[range], size = bounds->size[range];

	switch (random_word() % 8) {
	case 0:
		return start - 1 + random_word() % 3;
	case 1:
		return start + size - 1 + random_word() % 3;
	case 2:
		return start + (size ? random_word() % size : 0);
	case 3: /* the same, as far off as a sign is */
		return start + random_word() % 3 - 1 + (UINT64_C(1) << 63);
	case 4:
		return start + size + random_word() % 3 - 1 + (UINT64_C(1) << 63);
	case 5: /* halves that are alike */
		return (start & ~UINT64_C(0xffffffff)) | (random_word() & 0xffffffff);
	case 6:
		return random_word() % 3 - 1;
	default:
		return random_word();
	}
}

static void assert_kinds_agree(struct heap_bounds bounds)
{
	bool is_wide = (bounds.size[0] | bounds.size[1]) >> 63;
	struct word_filter filter = word_filter_for(bounds, 8);
	uint8_t bytes[FILTER_BYTES + 8];

	for (unsigned int chunk = 0; chunk < 200; chunk++) {
		uint8_t *at = bytes + chunk % 8;
		uint64_t expected;
		size_t some = chunk % FILTER_WORDS;

		for (unsigned int i = 0; i < FILTER_WORDS; i++) {
			uint64_t word = likely_word(&bounds);

			memcpy(at + 8 * (size_t)i, &word, sizeof(word));
		}
		expected = expected_mask(at, &bounds);
		for (size_t i = 0; word_filter_kind(i); i++) {
			const struct word_filter_kind *kind = word_filter_kind(i);

			if (kind->runs() && (kind->takes_all || !is_wide))
				assert_int_equal(kind->filter(at, &bounds), expected);
		}
		assert_int_equal(word_filter_mask(&filter, at, FILTER_WORDS), expected);
		assert_int_equal(word_filter_mask(&filter, at, some),
				 expected & ((UINT64_C(1) << some) - 1));
	}
}

TEST(all_kinds_agree_at_random_bounds)
{
	for (unsigned int i = 0; i < 500; i++) {
		struct heap_bounds bounds = { .tag_bits = 0 };

		for (unsigned int j = 0; j < 2; j++) {
			bounds.start[j] = random_word() >> random_word() % 64;
			bounds.size[j] = random_word() >> random_word() % 64;
		}
		assert_kinds_agree(bounds);
	}
}

TEST(all_kinds_agree_on_words_of_4_bytes)
{
	uint32_t words[FILTER_WORDS + 1];

	for (unsigned int chunk = 0; chunk < 20000; chunk++) {
		const uint8_t *bytes = (const uint8_t *)words + chunk % 4;
		struct heap_bounds bounds = { .tag_bits = 0 };
		struct word_filter filter;
		uint64_t expected;

		for (unsigned int i = 0; i < 2; i++) {
			bounds.start[i] = (uint32_t)random_word() >> random_word() % 32;
			bounds.size[i] = (uint32_t)random_word() >> random_word() % 32;
			if (bounds.size[i] > UINT32_MAX - bounds.start[i] || chunk % 8 == i)
				bounds.size[i] = 0;
		}
		/* One in a thousand has bounds that no vector takes. */
		if (chunk % 1000 == 0)
			bounds.size[0] = UINT64_C(1) << 32;
		for (unsigned int i = 0; i <= FILTER_WORDS; i++)
			words[i] = (uint32_t)likely_word(&bounds);
		expected = word_filter_narrow(bytes, FILTER_WORDS, &bounds);
		filter = word_filter_for(bounds, 4);
		assert_int_equal(word_filter_mask(&filter, bytes, FILTER_WORDS), expected);
		for (size_t i = 0; chunk % 1000 && word_filter_kind(i); i++)
			if (word_filter_kind(i)->runs())
				assert_int_equal(word_filter_kind(i)->narrow(bytes, &bounds),
						 expected);
	}
}

TEST(tag_bits_are_not_looked_at)
{
	const struct heap_bounds bounds = { { 0x55555a000000, 0xffff80000000 },
					    { 1 << 28, 1 << 20 },
					    UINT64_C(0xff) << 56 };
	const struct word_filter filter = word_filter_for(bounds, 8);
	uint64_t words[FILTER_WORDS];

	for (unsigned int chunk = 0; chunk < 200; chunk++) {
		const uint8_t *bytes = (const uint8_t *)words;

		for (unsigned int i = 0; i < FILTER_WORDS; i++)
			words[i] = likely_word(&bounds) ^ (random_word() & bounds.tag_bits);
		assert_int_equal(word_filter_mask(&filter, bytes, FILTER_WORDS),
				 expected_mask(bytes, &bounds));
		assert_int_equal(word_filter_mask(&filter, bytes, 60),
				 expected_mask(bytes, &bounds) & UINT64_MAX >> 4);
	}
}

TEST(all_kinds_agree_at_bounds_of_programs)
{
	const uint64_t low = 0x55555a000000, high = 0x7ffff0000000;
	const uint64_t half = UINT64_C(1) << 63;

	assert_kinds_agree((struct heap_bounds){ { 0 }, { 0 } });
	assert_kinds_agree((struct heap_bounds){ { low, high }, { 1 << 28, 1 << 20 } });
	assert_kinds_agree((struct heap_bounds){ { low, low }, { 1 << 28, 1 << 28 } });
	/* Bounds that a sign does not tell apart. */
	assert_kinds_agree((struct heap_bounds){ { 0, half }, { half - 1, half - 1 } });
	assert_kinds_agree((struct heap_bounds){ { 0, 1 }, { half, half } });
	assert_kinds_agree((struct heap_bounds){ { 1, 0 }, { UINT64_MAX, 16 } });
	assert_kinds_agree((struct heap_bounds){ { half - 8, 0 }, { 16, 16 } });
	assert_kinds_agree((struct heap_bounds){ { UINT64_MAX - 7, 0 }, { 8, 16 } });
}
