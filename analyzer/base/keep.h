/*
 * Keeping some elements of a list or an array, in place and in their order.
 *
 *	array_sort(&modules, compare_modules);
 *	array_keep(&modules, module, last, !last || module->start >= last->end);
 */
#pragma once

#include <stddef.h>

/*
 * Keep those of count elements for which the condition is true; returns how many they are. The
 * condition reads an element by the pointer item, and by last the one that was kept before, or
 * NULL.
 */
#define LIST_KEEP(list, count, item, last, ...)                                             \
	({                                                                                  \
		__auto_type keep_list_ = (list);                                            \
		const size_t keep_count_ = (count);                                         \
		size_t kept_ = 0;                                                           \
		for (size_t keep_number_ = 0; keep_number_ < keep_count_; keep_number_++) { \
			__auto_type item = &keep_list_[keep_number_];                       \
			__attribute__((unused)) __typeof__(keep_list_) last =               \
				kept_ ? &keep_list_[kept_ - 1] : NULL;                      \
			if (__VA_ARGS__)                                                    \
				keep_list_[kept_++] = *item;                                \
		}                                                                           \
		kept_;                                                                      \
	})

#define array_keep(array, item, last, ...)                                                         \
	do {                                                                                       \
		__typeof__(array) keep_array_ = (array);                                           \
		keep_array_->count = LIST_KEEP(keep_array_->items, keep_array_->count, item, last, \
					       __VA_ARGS__);                                       \
	} while (0)
