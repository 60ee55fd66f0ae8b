/*
 * Finds the possible headers of mapped chunks in 512 bytes.
 *
 * Its size has only the flag of mapped chunks, and is a multiple of 16; the word before it is the
 * distance from the start of the mapping, which is a page's. Hardly any place is like that: so
 * vectors filter all first.
 */
#pragma once

#include "allocators/glibc/glibc.h"

enum { FILTERED_BYTES = 512 };

/*
 * A bit for each of 64 words, set for the first one of each such place. The bytes are those at
 * address, a multiple of their number.
 */
typedef uint64_t (*mapped_filter_function)(const uint8_t *bytes, uint64_t address);

/* An implementation; all give the same. */
struct mapped_filter {
	const char *name;
	bool (*runs)(void); /* on this processor */
	mapped_filter_function filter;
};

/* The number-th implementation, the quickest first; NULL: there are no more. */
const struct mapped_filter *mapped_filter(size_t number);

/* The quickest one on this processor. */
mapped_filter_function mapped_filter_here(void);

/* Filter only the place at bytes. */
static inline bool mapped_filter_one(const uint8_t *bytes, uint64_t address)
{
	uint64_t before, size;

	memcpy(&before, bytes, sizeof(before));
	memcpy(&size, bytes + 8, sizeof(size));
	return size % 16 == IS_MMAPPED && (address - before) % PAGE == 0;
}

/*
 * Like mapped_filter_one(), for words of 4 bytes. The chunk's size includes neither the bytes that
 * alignment leaves out below it nor, since 2.43, as many at its end.
 */
static inline bool mapped_filter_narrow(const uint8_t *bytes, uint64_t address)
{
	uint32_t before, size;

	memcpy(&before, bytes, sizeof(before));
	memcpy(&size, bytes + 4, sizeof(size));
	return (size & FLAGS) == IS_MMAPPED && (address - before) % PAGE == 0 &&
	       (address + size - IS_MMAPPED + 8) % PAGE <= 8;
}
