/*
 * Lists: an array and its count.
 *
 * One that grows one by one is from malloc(). Its room doubles, at each count that is a power of
 * two, so nobody has to keep it.
 */
#pragma once

#include "analyzer/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Make room for one more behind the count-th; false if memory is short. */
#define LIST_GROW(list, count)                                                                  \
	({                                                                                      \
		size_t count_ = (count);                                                        \
		bool fits_ = (count_ & (count_ - 1)) != 0;                                      \
		void *new_ =                                                                    \
			fits_ ? NULL                                                            \
			      : reallocarray((list), count_ ? 2 * count_ : 1, sizeof(*(list))); \
		if (new_)                                                                       \
			(list) = new_;                                                          \
		fits_ || new_;                                                                  \
	})

/* Append the value: NULL, or error_no_memory. */
#define LIST_APPEND(list, count, ...)                      \
	({                                                 \
		bool appended_ = LIST_GROW(list, count);   \
		if (appended_)                             \
			(list)[(count)++] = (__VA_ARGS__); \
		appended_ ? NULL : &error_no_memory;       \
	})

/* for each of count elements, by a pointer to it; the list may be NULL if there are none. */
#define list_for_each(item, list, count) \
	for (__auto_type item = (list); item && item < (list) + (count); item++)

/*
 * The number of the first element whose member is above value, by which they are sorted upwards;
 * count if there is none.
 */
#define LIST_ABOVE(list, count, member, value)                      \
	({                                                          \
		__auto_type list_ = (list);                         \
		__auto_type value_ = (value);                       \
		size_t low_ = 0, high_ = (count);                   \
		while (low_ < high_) {                              \
			size_t middle_ = low_ + (high_ - low_) / 2; \
			if (list_[middle_].member <= value_)        \
				low_ = middle_ + 1;                 \
			else                                        \
				high_ = middle_;                    \
		}                                                   \
		low_;                                               \
	})

/* The last element whose member is at or below value, by which they are sorted; or NULL. */
#define LIST_LAST(list, count, member, value)                                 \
	({                                                                    \
		__auto_type first_ = (list);                                  \
		size_t above_ = LIST_ABOVE(first_, (count), member, (value)); \
		above_ > 0 ? &first_[above_ - 1] : NULL;                      \
	})

/* The range from its member start up to its member end that has the address; or NULL. */
#define LIST_HOLDER(list, count, start, end, address)                            \
	({                                                                       \
		uint64_t address_ = (address);                                   \
		__auto_type last_ = LIST_LAST((list), (count), start, address_); \
		last_ &&address_ < last_->end ? last_ : NULL;                    \
	})
