/*
 * Lists that grow one by one: an array from malloc() and its count. Its room
 * doubles, at each count that is a power of two, so nobody has to keep it.
 */
#ifndef ANALYZER_BASE_LIST_H
#define ANALYZER_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Make room for one more behind the count-th; false if memory is short. */
#define LIST_GROW(list, count)                                                \
	({                                                                    \
		size_t count_ = (count);                                      \
		bool fits_ = (count_ & (count_ - 1)) != 0;                    \
		void *new_ =                                                  \
			fits_ ? NULL                                          \
			      : reallocarray((list), count_ ? 2 * count_ : 1, \
					     sizeof(*(list)));                \
		if (new_)                                                     \
			(list) = new_;                                        \
		fits_ || new_;                                                \
	})

#endif
