#include "analyzer/heap/address_filter.h"

#include "analyzer/base/fetch.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { FIRST_BYTE = ADDRESS_BYTES - UPPER_BYTES };

static uint8_t groups_with(const struct address_filter *filter, size_t number, uint8_t byte)
{
	return filter->nibbles[number][0][byte & 15] & filter->nibbles[number][1][byte >> 4];
}

static bool passes(const struct address_filter *filter, const uint8_t *bytes)
{
	uint8_t groups = UINT8_MAX;

	for (size_t i = UPPER_BYTES; i > 0 && groups; i--)
		groups &= groups_with(filter, i - 1, bytes[FIRST_BYTE + i - 1]);
	return groups;
}

void address_filter_look_plainly(const struct address_filter *filter, const uint8_t *bytes,
				 size_t count, uint64_t *ret)
{
	for (size_t i = 0; i < count; i++, bytes += FILTERED) {
		ret[i] = 0;
		for (size_t j = 0; j < FILTERED; j++)
			ret[i] |= (uint64_t)passes(filter, bytes + j) << j;
	}
}

#ifdef __x86_64__

enum { VECTOR = 32 };

struct tables {
	__m256i low[UPPER_BYTES], high[UPPER_BYTES];
};

__attribute__((target("avx2"))) static inline __m256i twice(const uint8_t *row)
{
	return _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)row));
}

/* Find which of 32 places in a row fail. */
__attribute__((target("avx2"))) static inline uint32_t find_failing(const struct tables *tables,
								    const uint8_t *bytes)
{
	const __m256i nibble = _mm256_set1_epi8(15);
	__m256i groups = _mm256_set1_epi8(-1), zero = _mm256_setzero_si256();

	for (size_t i = UPPER_BYTES; i-- > 0;) {
		__m256i row = _mm256_loadu_si256((const void *)(bytes + FIRST_BYTE + i));
		__m256i low = _mm256_and_si256(row, nibble);
		__m256i high = _mm256_and_si256(_mm256_srli_epi16(row, 4), nibble);

		low = _mm256_shuffle_epi8(tables->low[i], low);
		high = _mm256_shuffle_epi8(tables->high[i], high);
		groups = _mm256_and_si256(groups, _mm256_and_si256(low, high));
		/* The uppermost byte of most texts and numbers is in no group. */
		if (_mm256_testz_si256(groups, groups))
			return UINT32_MAX;
	}
	return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(groups, zero));
}

__attribute__((target("avx2"))) static void look_by_vectors(const struct address_filter *filter,
							    const uint8_t *bytes, size_t count,
							    uint64_t *ret)
{
	struct tables tables;

	for (size_t i = 0; i < UPPER_BYTES; i++) {
		tables.low[i] = twice(filter->nibbles[i][0]);
		tables.high[i] = twice(filter->nibbles[i][1]);
	}
	for (size_t i = 0; i < count; i++, bytes += FILTERED) {
		uint64_t first = find_failing(&tables, bytes);
		uint64_t second = find_failing(&tables, bytes + VECTOR);

		fetch_next_page(bytes, FILTERED);
		ret[i] = ~(first | second << VECTOR);
	}
}

#endif

static void choose(struct address_filter *filter)
{
	filter->look = address_filter_look_plainly;
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2"))
		filter->look = look_by_vectors;
#endif
}

struct error *address_filter_init(struct address_filter *filter, size_t count,
				  struct memory_account *account)
{
	enum { LEAST_LOG = 12, BITS_EACH = 8, FEW = 256 };
	unsigned int log = LEAST_LOG;

	while (((uint64_t)1 << log) / BITS_EACH < count)
		log++;
	*filter = (struct address_filter){ .first = UINT64_MAX,
					   .shift = 64 - log,
					   .group = count <= FEW ? 24 : 32,
					   .bits.account = account };
	choose(filter);
	return memory_resize(&filter->bits, ((size_t)1 << log) / 8);
}

void address_filter_deinit(struct address_filter *filter)
{
	memory_release(&filter->bits);
}

void address_filter_add(struct address_filter *filter, uint64_t address)
{
	uint64_t *words = filter->bits.bytes;
	size_t slot = address_filter_slot(filter, address);

	words[slot / 64] |= UINT64_C(1) << (slot % 64);
	if (address < filter->first)
		filter->first = address;
	if (address > filter->last)
		filter->last = address;
	address_filter_pass(filter, address);
}

void address_filter_pass(struct address_filter *filter, uint64_t address)
{
	/*
	 * All of the bytes compared distinguish few addresses; many, only those of which the
	 * addresses of a heap that is no larger than 4 GB have one or two.
	 */
	uint8_t group = (uint8_t)(1 << (address >> filter->group) % 8);

	for (size_t i = 0; i < UPPER_BYTES; i++) {
		uint8_t byte = (uint8_t)(address >> 8 * (FIRST_BYTE + i));

		filter->nibbles[i][0][byte & 15] |= group;
		filter->nibbles[i][1][byte >> 4] |= group;
	}
}
