#include "analyzer/heap/word_filter.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

static bool runs_anywhere(void)
{
	return true;
}

/* Without branches: among pointers mixed with other words they would be mispredicted. */
static uint64_t filter_plain(const uint8_t *bytes, const struct heap_bounds *bounds)
{
	uint64_t mask = 0;

	for (unsigned int i = 0; i < FILTER_WORDS; i++) {
		uint64_t word;

		memcpy(&word, bytes + 8 * (size_t)i, sizeof(word));
		mask |= (uint64_t)((word - bounds->start[0] < bounds->size[0]) |
				   (word - bounds->start[1] < bounds->size[1]))
			<< i;
	}
	return mask;
}

uint64_t word_filter_narrow(const uint8_t *bytes, size_t words, const struct heap_bounds *bounds)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < words; i++) {
		uint32_t word;

		memcpy(&word, bytes + sizeof(word) * i, sizeof(word));
		mask |= (uint64_t)heap_bounds_hold(bounds, word) << i;
	}
	return mask;
}

static uint64_t filter_narrow(const uint8_t *bytes, const struct heap_bounds *bounds)
{
	return word_filter_narrow(bytes, FILTER_WORDS, bounds);
}

#ifdef __x86_64__
/*
 * SSE2 and AVX2 cannot compare unsigned words, and SSE2 no words at all. But as the bounds are
 * below 2^63 bytes, a word is within them if, and only if, it is not negative less their start, and
 * negative less their end.
 */

static __m128i both_sse2(const uint8_t *bytes, const __m128i starts[2], const __m128i ends[2])
{
	__m128i words = _mm_loadu_si128((const __m128i *)bytes);
	__m128i low =
		_mm_andnot_si128(_mm_sub_epi64(words, starts[0]), _mm_sub_epi64(words, ends[0]));
	__m128i high =
		_mm_andnot_si128(_mm_sub_epi64(words, starts[1]), _mm_sub_epi64(words, ends[1]));

	return _mm_or_si128(low, high);
}

/* The upper halves of four words' results, whose signs they have. */
static __m128i four_sse2(const uint8_t *bytes, const __m128i starts[2], const __m128i ends[2])
{
	__m128i low = both_sse2(bytes, starts, ends);
	__m128i high = both_sse2(bytes + 16, starts, ends);

	return _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(low), _mm_castsi128_ps(high),
					       _MM_SHUFFLE(3, 1, 3, 1)));
}

static uint64_t filter_sse2(const uint8_t *bytes, const struct heap_bounds *bounds)
{
	__m128i starts[2], ends[2];
	uint64_t mask = 0;

	for (int i = 0; i < 2; i++) {
		uint64_t end = bounds->start[i] + bounds->size[i];

		starts[i] = _mm_set1_epi64x((long long)bounds->start[i]);
		ends[i] = _mm_set1_epi64x((long long)end);
	}
	for (unsigned int i = 0; i < FILTER_WORDS; i += 16) {
		const uint8_t *at = bytes + 8 * (size_t)i;
		__m128i low = _mm_packs_epi32(four_sse2(at, starts, ends),
					      four_sse2(at + 32, starts, ends));
		__m128i high = _mm_packs_epi32(four_sse2(at + 64, starts, ends),
					       four_sse2(at + 96, starts, ends));

		mask |= (uint64_t)(unsigned int)_mm_movemask_epi8(_mm_packs_epi16(low, high)) << i;
	}
	return mask;
}

__attribute__((target("avx2"))) static uint64_t filter_avx2(const uint8_t *bytes,
							    const struct heap_bounds *bounds)
{
	__m256i starts[2], ends[2];
	uint64_t mask = 0;

	for (int i = 0; i < 2; i++) {
		uint64_t end = bounds->start[i] + bounds->size[i];

		starts[i] = _mm256_set1_epi64x((long long)bounds->start[i]);
		ends[i] = _mm256_set1_epi64x((long long)end);
	}
#pragma GCC unroll 16
	for (unsigned int i = 0; i < FILTER_WORDS; i += 4) {
		__m256i words = _mm256_loadu_si256((const __m256i *)(bytes + 8 * (size_t)i));
		__m256i low = _mm256_andnot_si256(_mm256_sub_epi64(words, starts[0]),
						  _mm256_sub_epi64(words, ends[0]));
		__m256i high = _mm256_andnot_si256(_mm256_sub_epi64(words, starts[1]),
						   _mm256_sub_epi64(words, ends[1]));
		__m256i in = _mm256_or_si256(low, high);

		mask |= (uint64_t)(unsigned int)_mm256_movemask_pd(_mm256_castsi256_pd(in)) << i;
	}
	return mask;
}

__attribute__((target("avx512f"))) static uint64_t filter_avx512(const uint8_t *bytes,
								 const struct heap_bounds *bounds)
{
	__m512i starts[2], sizes[2];
	uint64_t mask = 0;

	for (int i = 0; i < 2; i++) {
		starts[i] = _mm512_set1_epi64((long long)bounds->start[i]);
		sizes[i] = _mm512_set1_epi64((long long)bounds->size[i]);
	}
#pragma GCC unroll 8
	for (unsigned int i = 0; i < FILTER_WORDS; i += 8) {
		__m512i words = _mm512_loadu_si512(bytes + 8 * (size_t)i);
		unsigned int low =
			_mm512_cmplt_epu64_mask(_mm512_sub_epi64(words, starts[0]), sizes[0]);
		unsigned int high =
			_mm512_cmplt_epu64_mask(_mm512_sub_epi64(words, starts[1]), sizes[1]);

		mask |= (uint64_t)(low | high) << i;
	}
	return mask;
}

/*
 * Words of 4 bytes are compared as signed ones, less their start, with half of all words added to
 * both.
 */
static const uint32_t HALF = UINT32_C(1) << 31;

static __m128i narrow_sse2(const uint8_t *bytes, const __m128i starts[2], const __m128i sizes[2])
{
	__m128i words = _mm_loadu_si128((const __m128i *)bytes);

	return _mm_or_si128(_mm_cmplt_epi32(_mm_sub_epi32(words, starts[0]), sizes[0]),
			    _mm_cmplt_epi32(_mm_sub_epi32(words, starts[1]), sizes[1]));
}

static uint64_t filter_narrow_sse2(const uint8_t *bytes, const struct heap_bounds *bounds)
{
	__m128i starts[2], sizes[2];
	uint64_t mask = 0;

	for (int i = 0; i < 2; i++) {
		starts[i] = _mm_set1_epi32((int)((uint32_t)bounds->start[i] + HALF));
		sizes[i] = _mm_set1_epi32((int)((uint32_t)bounds->size[i] + HALF));
	}
	for (unsigned int i = 0; i < FILTER_WORDS; i += 16) {
		const uint8_t *at = bytes + 4 * (size_t)i;
		__m128i low = _mm_packs_epi32(narrow_sse2(at, starts, sizes),
					      narrow_sse2(at + 16, starts, sizes));
		__m128i high = _mm_packs_epi32(narrow_sse2(at + 32, starts, sizes),
					       narrow_sse2(at + 48, starts, sizes));

		mask |= (uint64_t)(unsigned int)_mm_movemask_epi8(_mm_packs_epi16(low, high)) << i;
	}
	return mask;
}

__attribute__((target("avx2"))) static uint64_t filter_narrow_avx2(const uint8_t *bytes,
								   const struct heap_bounds *bounds)
{
	__m256i starts[2], sizes[2];
	uint64_t mask = 0;

	for (int i = 0; i < 2; i++) {
		starts[i] = _mm256_set1_epi32((int)((uint32_t)bounds->start[i] + HALF));
		sizes[i] = _mm256_set1_epi32((int)((uint32_t)bounds->size[i] + HALF));
	}
#pragma GCC unroll 8
	for (unsigned int i = 0; i < FILTER_WORDS; i += 8) {
		__m256i words = _mm256_loadu_si256((const __m256i *)(bytes + 4 * (size_t)i));
		__m256i low = _mm256_cmpgt_epi32(sizes[0], _mm256_sub_epi32(words, starts[0]));
		__m256i high = _mm256_cmpgt_epi32(sizes[1], _mm256_sub_epi32(words, starts[1]));
		__m256i in = _mm256_or_si256(low, high);

		mask |= (uint64_t)(unsigned int)_mm256_movemask_ps(_mm256_castsi256_ps(in)) << i;
	}
	return mask;
}

__attribute__((target("avx512f"))) static uint64_t filter_narrow_avx512(
	const uint8_t *bytes, const struct heap_bounds *bounds)
{
	__m512i starts[2], sizes[2];
	uint64_t mask = 0;

	for (int i = 0; i < 2; i++) {
		starts[i] = _mm512_set1_epi32((int)(uint32_t)bounds->start[i]);
		sizes[i] = _mm512_set1_epi32((int)(uint32_t)bounds->size[i]);
	}
#pragma GCC unroll 4
	for (unsigned int i = 0; i < FILTER_WORDS; i += 16) {
		__m512i words = _mm512_loadu_si512(bytes + 4 * (size_t)i);
		unsigned int low =
			_mm512_cmplt_epu32_mask(_mm512_sub_epi32(words, starts[0]), sizes[0]);
		unsigned int high =
			_mm512_cmplt_epu32_mask(_mm512_sub_epi32(words, starts[1]), sizes[1]);

		mask |= (uint64_t)(low | high) << i;
	}
	return mask;
}

static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}

/* Processors before those with VBMI2 run slower for a while after AVX-512. */
static bool has_avx512(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vbmi2");
}
#endif

static const struct word_filter_kind kinds[] = {
#ifdef __x86_64__
	{ "avx512", has_avx512, filter_avx512, filter_narrow_avx512, true },
	{ "avx2", has_avx2, filter_avx2, filter_narrow_avx2, false },
	{ "sse2", runs_anywhere, filter_sse2, filter_narrow_sse2, false },
#endif
	{ "plain", runs_anywhere, filter_plain, filter_narrow, true },
};

const struct word_filter_kind *word_filter_kind(size_t number)
{
	return number < COUNT_OF(kinds) ? &kinds[number] : NULL;
}

static uint64_t filter_tagged(const uint8_t *bytes, const struct heap_bounds *bounds)
{
	const uint64_t address_bits = ~bounds->tag_bits;
	uint64_t words[FILTER_WORDS];

	memcpy(words, bytes, sizeof(words));
	for (unsigned int i = 0; i < FILTER_WORDS; i++)
		words[i] &= address_bits;
	return filter_plain((const uint8_t *)words, bounds);
}

/* True if all bounds are below 4 GiB, and no size is 4 GiB. */
static bool are_narrow(const struct heap_bounds *bounds)
{
	for (int i = 0; i < 2; i++)
		if (bounds->start[i] > UINT32_MAX || bounds->size[i] > UINT32_MAX ||
		    bounds->size[i] > (UINT64_C(1) << 32) - bounds->start[i])
			return false;
	return true;
}

struct word_filter word_filter_for(struct heap_bounds bounds, unsigned int word_size)
{
	bool is_wide = (bounds.size[0] | bounds.size[1]) >> 63;
	size_t i = 0;

	if (word_size == sizeof(uint32_t)) {
		while (!kinds[i].runs() ||
		       (kinds[i].narrow != filter_narrow && !are_narrow(&bounds)))
			i++;
		return (struct word_filter){ bounds, kinds[i].narrow, word_size };
	}
	if (bounds.tag_bits)
		return (struct word_filter){ bounds, filter_tagged, word_size };
	/* The last one runs anywhere, and takes all. */
	while (!kinds[i].runs() || (is_wide && !kinds[i].takes_all))
		i++;
	return (struct word_filter){ bounds, kinds[i].filter, word_size };
}
