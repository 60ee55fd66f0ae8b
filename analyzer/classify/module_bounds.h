/*
 * Whether words refer to modules at all, by two ranges: modules lie near the program and near the
 * libraries, far apart. That is quick, and does not depend on symbols.
 */
#ifndef ANALYZER_CLASSIFY_MODULE_BOUNDS_H
#define ANALYZER_CLASSIFY_MODULE_BOUNDS_H

#include "analyzer/heap/index.h"
#include "analyzer/image/view.h"
#include "analyzer/program/program.h"

/* An identity word is among the first: a cache line of them. */
enum { IDENTITY_BYTES = 64, IDENTITY_WORDS = IDENTITY_BYTES / 8 };

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

/* Read the first words of an allocation that has that range; how many there are. */
static inline size_t identity_words_read(struct view *view, struct memory_range range,
					 uint64_t words[static IDENTITY_WORDS])
{
	uint64_t size = range.end - range.start;
	size_t count = size < IDENTITY_BYTES ? size / sizeof(*words) : IDENTITY_WORDS;

	return view_read(view, range.start, words, count * sizeof(*words)) ? count : 0;
}

/* Whether any of the words is within the bounds. */
static inline bool module_bounds_meet(const struct module_bounds *bounds, const uint64_t *words,
				      size_t count)
{
	size_t i = 0;

	while (i < count && !module_bounds_hold(bounds, words[i]))
		i++;
	return i < count;
}

#endif
