/*
 * Words become placeholders, and some need a look: 64 at once, without branches, which would be
 * mispredicted.
 */
#include "analyzer/base/bytes.h"
#include "analyzer/slim/parts.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { WORD = sizeof(uint64_t) };

/* A sum has the highest bit of the first and third byte if these are at least '\t'. */
static const uint64_t FIRST_AND_THIRD = 0x7f007f, LEAST = 0x10001 * (0x80 - '\t');
static const uint64_t THEIR_HIGHEST = 0x800080, NOT_ASCII = 0x80808080;

static inline bool may_begin_text(uint64_t word)
{
	uint64_t large = (word & FIRST_AND_THIRD) + LEAST;

	return ((~large & THEIR_HIGHEST) | (word & NOT_ASCII)) == 0;
}

struct slim_look slim_look_plain(const uint8_t *bytes, size_t words, uint32_t half, uint8_t *ret)
{
	struct slim_look look = { 0 };

	for (size_t i = 0; i < words; i++) {
		uint64_t word = load_word(bytes + i * WORD, WORD);
		uint64_t low = -(uint64_t)((uint32_t)word != 0),
			 high = -(uint64_t)(word >> 32 != 0);
		uint64_t now = (low & half) | (high & (uint64_t)half << 32);

		look.texts |= (uint64_t)may_begin_text(word) << i;
		look.zeros |= (uint64_t)(word == 0) << i;
		memcpy(ret + i * WORD, &now, WORD);
	}
	return look;
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static inline uint64_t signs_of(__m256i words)
{
	return (uint64_t)(unsigned int)_mm256_movemask_pd(_mm256_castsi256_pd(words));
}

__attribute__((target("avx2"))) static struct slim_look look_avx2(const uint8_t *bytes,
								  uint32_t half, uint8_t *ret)
{
	const __m256i none = _mm256_setzero_si256(), halves = _mm256_set1_epi32((int)half);
	const __m256i parts = _mm256_set1_epi64x((long long)FIRST_AND_THIRD);
	const __m256i least = _mm256_set1_epi64x((long long)LEAST);
	const __m256i highest = _mm256_set1_epi64x((long long)THEIR_HIGHEST);
	const __m256i wide = _mm256_set1_epi64x((long long)NOT_ASCII);
	struct slim_look look = { 0 };

	for (unsigned int i = 0; i < SLIM_LOOK_WORDS; i += 4) {
		__m256i words = _mm256_loadu_si256((const __m256i *)(bytes + i * WORD));
		__m256i now = _mm256_andnot_si256(_mm256_cmpeq_epi32(words, none), halves);
		__m256i large = _mm256_add_epi64(_mm256_and_si256(words, parts), least);
		__m256i bad = _mm256_or_si256(_mm256_andnot_si256(large, highest),
					      _mm256_and_si256(words, wide));

		look.texts |= signs_of(_mm256_cmpeq_epi64(bad, none)) << i;
		look.zeros |= signs_of(_mm256_cmpeq_epi64(words, none)) << i;
		_mm256_storeu_si256((__m256i *)(ret + i * WORD), now);
	}
	return look;
}
#endif

struct slim_look slim_look(const uint8_t *bytes, size_t words, uint32_t half, uint8_t *ret)
{
#ifdef __x86_64__
	if (words == SLIM_LOOK_WORDS && __builtin_cpu_supports("avx2"))
		return look_avx2(bytes, half, ret);
#endif
	return slim_look_plain(bytes, words, half, ret);
}
