#include "analyzer/base/bitmap.h"

#include <assert.h>
#include <string.h>

struct error *bitmap_init(struct bitmap *bitmap, size_t count, struct memory_account *account)
{
	struct memory memory = { .account = account };

	TRY(memory_resize(&memory, (count / 64 + 1) * sizeof(uint64_t)));
	*bitmap = (struct bitmap){ memory.bytes, count, memory };
	return NULL;
}

struct error *bitmap_init_minus(struct bitmap *bitmap, const struct bitmap *all,
				const struct bitmap *less, struct memory_account *account)
{
	TRY(bitmap_init(bitmap, all->count, account));
	bitmap_copy(bitmap, all);
	if (less)
		bitmap_minus(bitmap, less);
	return NULL;
}

void bitmap_deinit(struct bitmap *bitmap)
{
	memory_release(&bitmap->memory);
	*bitmap = (struct bitmap){ 0 };
}

void bitmap_fill(struct bitmap *bitmap)
{
	size_t words = bitmap_word_count(bitmap);

	for (size_t i = 0; i < words; i++)
		bitmap->words[i] = UINT64_MAX;
	if (bitmap->count % 64)
		bitmap->words[words - 1] >>= 64 - bitmap->count % 64;
}

/* The first at or above bit that is set once all are flipped by flip. */
static inline size_t next(const struct bitmap *bitmap, size_t bit, uint64_t flip)
{
	size_t index = bit / 64, words = bitmap_word_count(bitmap);
	uint64_t word;

	if (bit >= bitmap->count)
		return bitmap->count;
	word = (bitmap->words[index] ^ flip) & (UINT64_MAX << (bit % 64));
	while (!word) {
		if (++index >= words)
			return bitmap->count;
		word = bitmap->words[index] ^ flip;
	}
	return index * 64 + (size_t)__builtin_ctzll(word);
}

size_t bitmap_search(const struct bitmap *bitmap, size_t bit)
{
	return next(bitmap, bit, 0);
}

size_t bitmap_next_clear(const struct bitmap *bitmap, size_t bit)
{
	size_t clear = next(bitmap, bit, UINT64_MAX);

	return clear < bitmap->count ? clear : bitmap->count;
}

size_t bitmap_weight(const struct bitmap *bitmap)
{
	size_t weight = 0;

	for (size_t i = 0; i < bitmap_word_count(bitmap); i++)
		weight += bits_count(bitmap->words[i]);
	return weight;
}

bool bitmap_within(const struct bitmap *bitmap, const struct bitmap *other)
{
	assert(bitmap->count == other->count);
	for (size_t i = 0; i < bitmap_word_count(bitmap); i++)
		if (bitmap->words[i] & ~other->words[i])
			return false;
	return true;
}

bool bitmap_meets(const struct bitmap *bitmap, const struct bitmap *other)
{
	assert(bitmap->count == other->count);
	for (size_t i = 0; i < bitmap_word_count(bitmap); i++)
		if (bitmap->words[i] & other->words[i])
			return true;
	return false;
}

void bitmap_copy(struct bitmap *bitmap, const struct bitmap *other)
{
	assert(bitmap->count == other->count);
	if (bitmap->count)
		memcpy(bitmap->words, other->words, bitmap_word_count(bitmap) * sizeof(uint64_t));
}

#define DEFINE_COMBINE(name, operator)                                 \
	void name(struct bitmap *bitmap, const struct bitmap *other)   \
	{                                                              \
		assert(bitmap->count == other->count);                 \
		for (size_t i = 0; i < bitmap_word_count(bitmap); i++) \
			bitmap->words[i] operator other->words[i];     \
	}

DEFINE_COMBINE(bitmap_or, |=)
DEFINE_COMBINE(bitmap_and, &=)
DEFINE_COMBINE(bitmap_minus, &= ~)
