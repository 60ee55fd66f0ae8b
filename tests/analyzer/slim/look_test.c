#include "analyzer/slim/parts.h"

#include "tests/assertions.h"

enum { HALF = 0xb5b5b5b5, BYTES = SLIM_LOOK_WORDS * 8 };

static uint64_t seed = 1;

static uint64_t random_word(void)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return seed ^ seed >> 29;
}

/* One of few: zeros, halves, placeholders, text, what is nearly text. */
static uint64_t likely_word(void)
{
	uint64_t word = random_word();

	switch (word >> 60) {
	case 0:
		return 0;
	case 1:
		return word & UINT32_MAX;
	case 2:
		return word << 32;
	case 3:
		return word & 1 ? HALF : (uint64_t)HALF << 32;
	case 4:
		return (uint64_t)HALF << 32 | HALF;
	case 5:
		return 0x2020202020202020 | (word & 0x5f5f5f5f5f5f5f5f);
	case 6:
		return (word & 0x7f007f007f007f) | 0x20002000200020;
	case 7:
		return (word & 0x0f0f0f0f) | (word & 0xff) << 32;
	default:
		return word;
	}
}

TEST(all_ways_to_look_agree)
{
	uint8_t bytes[BYTES], one[BYTES], other[BYTES];

	for (unsigned int round = 0; round < 1000; round++) {
		struct slim_look look, plain;

		for (size_t i = 0; i < BYTES; i += 8) {
			uint64_t word = likely_word();

			memcpy(bytes + i, &word, sizeof(word));
		}
		look = slim_look(bytes, SLIM_LOOK_WORDS, HALF, one);
		plain = slim_look_plain(bytes, SLIM_LOOK_WORDS, HALF, other);
		assert_memory_equal(one, other, BYTES);
		assert_int_equal(look.texts, plain.texts);
		assert_int_equal(look.zeros, plain.zeros);
	}
}

TEST(what_is_seen_of_words)
{
	const uint64_t words[] = {
		0,
		7,
		UINT64_C(7) << 32,
		HALF,
		0x64636261,
		0x0062006100630064,
		UINT64_C(0x8064636261) << 24,
	};
	uint64_t now[COUNT_OF(words)];
	struct slim_look look =
		slim_look((const uint8_t *)words, COUNT_OF(words), HALF, (uint8_t *)now);

	assert_int_equal(look.zeros, 1 << 0);
	assert_int_equal(look.texts, 1 << 4 | 1 << 5);
	assert_int_equal(now[0], 0);
	assert_int_equal(now[1], HALF);
	assert_int_equal(now[2], (uint64_t)HALF << 32);
	assert_int_equal(now[5], (uint64_t)HALF << 32 | HALF);
}
