#include "allocators/glibc/mapped_filter.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

static bool runs_anywhere(void)
{
	return true;
}

static uint64_t filter_plain(const uint8_t *bytes, uint64_t address)
{
	uint64_t found = 0;

	for (unsigned int i = 0; i < FILTERED_BYTES; i += 16)
		found |= (uint64_t)mapped_filter_one(bytes + i, address + i) << (i / 8);
	return found;
}

#ifdef __x86_64__
/* The places of which both words fit. */
static uint64_t places_of(uint64_t words)
{
	return words & words >> 1 & UINT64_C(0x5555555555555555);
}

/* The bits that must have a certain value: the upper four bytes of a word have none. */
static __m128i masks_sse2(void)
{
	return _mm_setr_epi32(PAGE - 1, 0, 15, 0);
}

static __m128i expected_sse2(uint64_t address)
{
	return _mm_setr_epi32((int)(address % PAGE), 0, IS_MMAPPED, 0);
}

/* Mark the words of two places that fit, in 32 bits for each. */
static __m128i two_sse2(const uint8_t *bytes, __m128i expected)
{
	const __m128i masks = masks_sse2(), next = _mm_setr_epi32(16, 0, 0, 0);
	__m128i low = _mm_loadu_si128((const __m128i *)bytes);
	__m128i high = _mm_loadu_si128((const __m128i *)(bytes + 16));

	low = _mm_cmpeq_epi32(_mm_and_si128(low, masks), expected);
	high = _mm_cmpeq_epi32(_mm_and_si128(high, masks), _mm_add_epi32(expected, next));
	return _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(low), _mm_castsi128_ps(high),
					       _MM_SHUFFLE(2, 0, 2, 0)));
}

/* Filter four places, with 16 bits for each word. */
static __m128i four_sse2(const uint8_t *bytes, __m128i expected)
{
	const __m128i next = _mm_setr_epi32(32, 0, 0, 0);

	return _mm_packs_epi32(two_sse2(bytes, expected),
			       two_sse2(bytes + 32, _mm_add_epi32(expected, next)));
}

static uint64_t filter_sse2(const uint8_t *bytes, uint64_t address)
{
	const __m128i next = _mm_setr_epi32(64, 0, 0, 0);
	__m128i expected = expected_sse2(address);
	uint64_t words = 0;

	for (unsigned int i = 0; i < FILTERED_BYTES; i += 128) {
		__m128i low = four_sse2(bytes + i, expected), high;

		expected = _mm_add_epi32(expected, next);
		high = four_sse2(bytes + i + 64, expected);
		expected = _mm_add_epi32(expected, next);
		words |= (uint64_t)(unsigned int)_mm_movemask_epi8(_mm_packs_epi16(low, high))
			 << (i / 8);
	}
	return places_of(words);
}

__attribute__((target("avx2"))) static uint64_t filter_avx2(const uint8_t *bytes, uint64_t address)
{
	const __m256i masks = _mm256_broadcastsi128_si256(masks_sse2());
	const __m256i next = _mm256_setr_epi32(32, 0, 0, 0, 32, 0, 0, 0);
	__m256i expected = _mm256_setr_m128i(expected_sse2(address), expected_sse2(address + 16));
	uint64_t words = 0;

#pragma GCC unroll 16
	for (unsigned int i = 0; i < FILTERED_BYTES; i += 32) {
		__m256i two = _mm256_loadu_si256((const __m256i *)(bytes + i));

		two = _mm256_cmpeq_epi64(_mm256_and_si256(two, masks), expected);
		words |= (uint64_t)(unsigned int)_mm256_movemask_pd(_mm256_castsi256_pd(two))
			 << (i / 8);
		expected = _mm256_add_epi32(expected, next);
	}
	return places_of(words);
}

static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}
#endif

static const struct mapped_filter filters[] = {
#ifdef __x86_64__
	{ "avx2", has_avx2, filter_avx2 },
	{ "sse2", runs_anywhere, filter_sse2 },
#endif
	{ "plain", runs_anywhere, filter_plain },
};

const struct mapped_filter *mapped_filter(size_t number)
{
	return number < COUNT_OF(filters) ? &filters[number] : NULL;
}

mapped_filter_function mapped_filter_here(void)
{
	size_t i = 0;

	while (!filters[i].runs())
		i++;
	return filters[i].filter;
}
