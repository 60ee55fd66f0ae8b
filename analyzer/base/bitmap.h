/*
 * A set of small numbers, as bits.
 *
 * Sets of allocations are bitmaps over their ids. Two bitmaps that meet in an operation have the
 * same count.
 */
#pragma once

#include "analyzer/base/memory.h"

#include <stdbool.h>
#include <stdint.h>

struct bitmap {
	uint64_t *words;
	size_t count; /* bits; those behind it in the last word are 0 */
	struct memory memory;
};

/* A bitmap of count zeros, in memory counted by account. */
struct error *bitmap_init(struct bitmap *bitmap, size_t count, struct memory_account *account);

/* With the bits of all that are not in less, which may be NULL. */
struct error *bitmap_init_minus(struct bitmap *bitmap, const struct bitmap *all,
				const struct bitmap *less, struct memory_account *account);
void bitmap_deinit(struct bitmap *bitmap);
DEFINE_DEINIT(bitmap_deinit, struct bitmap)

static inline size_t bitmap_word_count(const struct bitmap *bitmap)
{
	return (bitmap->count + 63) / 64;
}

static inline bool bitmap_get(const struct bitmap *bitmap, size_t bit)
{
	return bitmap->words[bit / 64] >> (bit % 64) & 1;
}

static inline void bitmap_set(struct bitmap *bitmap, size_t bit)
{
	bitmap->words[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static inline void bitmap_clear(struct bitmap *bitmap, size_t bit)
{
	bitmap->words[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
}

/* For writers side by side. */
static inline void bitmap_set_atomic(struct bitmap *bitmap, size_t bit)
{
	__atomic_fetch_or(&bitmap->words[bit / 64], UINT64_C(1) << (bit % 64), __ATOMIC_RELAXED);
}

/* Set the bit atomically; returns true if it was set before. */
static inline bool bitmap_set_was_atomic(struct bitmap *bitmap, size_t bit)
{
	uint64_t *word = &bitmap->words[bit / 64];
	uint64_t mask = UINT64_C(1) << (bit % 64);

	/* Most often it was: to look costs less than to write. */
	return (__atomic_load_n(word, __ATOMIC_RELAXED) & mask) ||
	       (__atomic_fetch_or(word, mask, __ATOMIC_RELAXED) & mask);
}

/* How many bits of the word are set; quick on processors that cannot count. */
static inline unsigned int bits_count(uint64_t word)
{
	word -= word >> 1 & UINT64_C(0x5555555555555555);
	word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
	word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return (unsigned int)(word * UINT64_C(0x0101010101010101) >> 56);
}

/* Set all bits. */
void bitmap_fill(struct bitmap *bitmap);

/* The first set bit at or above bit, or bitmap->count; bitmap_search(): often far away. */
size_t bitmap_search(const struct bitmap *bitmap, size_t bit);

static inline size_t bitmap_next(const struct bitmap *bitmap, size_t bit)
{
	uint64_t word = bit < bitmap->count ? bitmap->words[bit / 64] >> bit % 64 : 0;

	return word ? bit + (size_t)__builtin_ctzll(word) : bitmap_search(bitmap, bit);
}

/* The first bit at or above bit that is not set, or bitmap->count. */
size_t bitmap_next_clear(const struct bitmap *bitmap, size_t bit);

/* How many bits are set. */
size_t bitmap_weight(const struct bitmap *bitmap);

/* The first is true if all bits of bitmap are in other, too; the second, if any is. */
bool bitmap_within(const struct bitmap *bitmap, const struct bitmap *other);
bool bitmap_meets(const struct bitmap *bitmap, const struct bitmap *other);

void bitmap_copy(struct bitmap *bitmap, const struct bitmap *other);
void bitmap_or(struct bitmap *bitmap, const struct bitmap *other);
void bitmap_and(struct bitmap *bitmap, const struct bitmap *other);
void bitmap_minus(struct bitmap *bitmap, const struct bitmap *other);

/* for (size_t bit in bitmap), upwards */
#define bitmap_for_each(bit, bitmap)                                     \
	for (size_t bit = bitmap_next(bitmap, 0); bit < (bitmap)->count; \
	     bit = bitmap_next(bitmap, bit + 1))
