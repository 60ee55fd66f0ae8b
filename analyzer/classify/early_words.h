/*
 * The first words of an allocation, which may say what it is, and a quick test of whether they may
 * lead to modules.
 */
#pragma once

#include "analyzer/image/view.h"
#include "analyzer/program/program.h"

/* So many words: a cache line of them. */
enum { EARLY_BYTES = 64, EARLY_WORDS = EARLY_BYTES / 8 };

/*
 * Two ranges to test quickly, without symbols, whether words may refer to modules: modules are near
 * the program or near the libraries, far apart.
 */
struct module_bounds {
	struct memory_range ranges[2];
};

/* The modules up to the widest gap between two, and those behind it. */
struct module_bounds module_bounds_find(const struct program *program);

static inline bool module_bounds_hold(const struct module_bounds *bounds, uint64_t address)
{
	const struct memory_range *ranges = bounds->ranges;

	return address - ranges[0].start < ranges[0].end - ranges[0].start ||
	       address - ranges[1].start < ranges[1].end - ranges[1].start;
}

/* Like early_words_read(), for words of 4 bytes. */
size_t early_narrow_words_read(struct view *view, struct memory_range range,
			       uint64_t words[static EARLY_WORDS]);

/* Read the first words of an allocation that has that range; how many there are. */
static inline size_t early_words_read(struct view *view, struct memory_range range,
				      uint64_t words[static EARLY_WORDS])
{
	uint64_t size = range.end - range.start;
	size_t count = size < EARLY_BYTES ? size / sizeof(*words) : EARLY_WORDS;

	if (image_word_size(view->image) != sizeof(*words))
		return early_narrow_words_read(view, range, words);
	return view_read(view, range.start, words, count * sizeof(*words)) ? count : 0;
}

/* True if any of the words is within the bounds: without branches, as nearly none is. */
static inline bool module_bounds_meet(const struct module_bounds *bounds, const uint64_t *words,
				      size_t count)
{
	const struct memory_range low = bounds->ranges[0], high = bounds->ranges[1];
	const uint64_t low_size = low.end - low.start, high_size = high.end - high.start;
	bool met = false;

	for (size_t i = 0; i < count; i++)
		met |= (words[i] - low.start < low_size) | (words[i] - high.start < high_size);
	return met;
}
