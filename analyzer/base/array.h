/*
 * Growing arrays of one type, in memory that is counted and limited (memory.h).
 *
 *	ARRAY(struct edge) edges;
 *
 *	arrays_use(account, &edges);
 *	error = array_append(&edges, (struct edge){ from, to });
 *
 * The items are edges.items[0] to edges.items[edges.count - 1]. They may move when one is added.
 */
#pragma once

#include "analyzer/base/memory.h"
#include "analyzer/base/sort.h"

/* items is where the memory begins. */
#define ARRAY(type)                           \
	struct {                              \
		union {                       \
			struct memory memory; \
			type *items;          \
		};                            \
		size_t count;                 \
	}

/* for each item, by a pointer to it; none may be appended meanwhile. */
#define array_for_each(item, array)                                                             \
	for (__auto_type item = (array)->items; item && item < (array)->items + (array)->count; \
	     item++)

/* Make room for more items, so that to append them cannot fail. */
#define array_reserve(array, more) \
	memory_reserve(&(array)->memory, ((array)->count + (more)) * sizeof(*(array)->items))

/* Append the value, which may still read the count: NULL, or the error. */
#define array_append(array, ...)                                                        \
	({                                                                              \
		__typeof__(array) array_ = (array);                                     \
		struct error *array_error_ = NULL;                                      \
                                                                                        \
		if ((array_->count + 1) * sizeof(*array_->items) > array_->memory.size) \
			array_error_ = array_reserve(array_, 1);                        \
		if (!array_error_) {                                                    \
			array_->items[array_->count] = (__VA_ARGS__);                   \
			array_->count++;                                                \
		}                                                                       \
		array_error_;                                                           \
	})

/* Give it exactly so many items; new ones are zero. */
#define array_resize(array, new_count)                                                         \
	({                                                                                     \
		__typeof__(array) array_ = (array);                                            \
		size_t array_count_ = (new_count);                                             \
		struct error *array_error_ =                                                   \
			memory_resize(&array_->memory, array_count_ * sizeof(*array_->items)); \
                                                                                               \
		if (!array_error_)                                                             \
			array_->count = array_count_;                                          \
		array_error_;                                                                  \
	})

/* Exchange the items of two arrays of one type; they need not be declared together. */
#define array_swap(array, other)                         \
	do {                                             \
		struct memory memory_ = (array)->memory; \
		size_t swapped_count_ = (array)->count;  \
                                                         \
		(array)->memory = (other)->memory;       \
		(array)->count = (other)->count;         \
		(other)->memory = memory_;               \
		(other)->count = swapped_count_;         \
	} while (0)

#define array_sort(array, compare) SORT((array)->items, (array)->count, compare)

/* Release its memory; the array is empty then, and may grow again. */
#define array_release(array)                        \
	do {                                        \
		__typeof__(array) array_ = (array); \
                                                    \
		memory_release(&array_->memory);    \
		array_->count = 0;                  \
	} while (0)

/*
 * Have the account count the memory of several arrays or tables (table.h), before they grow; and
 * release several arrays.
 *
 *	arrays_use(account, &graph->edges, &graph->nodes);
 *	arrays_release(&graph->edges, &graph->nodes);
 */
#define arrays_use(counting, ...)                             \
	do {                                                  \
		struct memory_account *account_ = (counting); \
                                                              \
		FOR_EACH(ARRAY_USE, __VA_ARGS__)              \
	} while (0)
#define arrays_release(...)                          \
	do {                                         \
		FOR_EACH(ARRAY_RELEASE, __VA_ARGS__) \
	} while (0)
#define ARRAY_USE(array)     (array)->memory.account = account_;
#define ARRAY_RELEASE(array) array_release(array);

/* Release a structure that begins with the array, for _cleanup_(). */
static inline void cleanup_array_release(void *array)
{
	ARRAY(void) *released = array;

	memory_release(&released->memory);
	released->count = 0;
}
