/*
 * Sorting, by comparison functions that are lists of members, and searching what is sorted.
 *
 *	DEFINE_COMPARE(compare_parts, struct part, DESCENDING(weight), ASCENDING(number))
 *
 * defines a static function for qsort(): by weight, the largest first; equal ones by number.
 */
#pragma once

#include "analyzer/base/macros.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DEFINE_COMPARE(name, type, ...) static DEFINE_PUBLIC_COMPARE(name, type, __VA_ARGS__)

/* Like DEFINE_COMPARE(), with external linkage. */
#define DEFINE_PUBLIC_COMPARE(name, type, ...)      \
	int name(const void *a, const void *b)      \
	{                                           \
		const type *left = a, *right = b;   \
                                                    \
		FOR_EACH(COMPARE_STEP, __VA_ARGS__) \
		return 0;                           \
	}
#define COMPARE_STEP(step) step

#define ASCENDING(member)                  \
	if (left->member != right->member) \
		return left->member < right->member ? -1 : 1;
#define DESCENDING(member)                 \
	if (left->member != right->member) \
		return left->member > right->member ? -1 : 1;

/* Compare texts with strcmp(). */
#define ALPHABETICAL(member)                          \
	if (strcmp(left->member, right->member) != 0) \
		return strcmp(left->member, right->member);

/* Compare with another function of the same kind. */
#define AS_BY(function)                 \
	if (function(left, right) != 0) \
		return function(left, right);

/*
 * Bisect: the first number from begin up to end for which the condition on `number` is false; end
 * if there is none. Behind it, the condition is false for all.
 */
#define BISECT(number, begin, end, condition)                            \
	({                                                               \
		size_t low_ = (begin), high_ = (end);                    \
                                                                         \
		while (low_ < high_) {                                   \
			const size_t number = low_ + (high_ - low_) / 2; \
                                                                         \
			if (condition)                                   \
				low_ = number + 1;                       \
			else                                             \
				high_ = number;                          \
		}                                                        \
		low_;                                                    \
	})

static inline int compare_u64(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static inline int compare_u32(const void *a, const void *b)
{
	const uint32_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* Sort count items; of none, the list may be NULL. */
#define SORT(list, count, compare)                                          \
	do {                                                                \
		if ((count) > 0)                                            \
			qsort((list), (count), sizeof(*(list)), (compare)); \
	} while (0)
