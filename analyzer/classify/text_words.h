/*
 * Words of a block that holds text, which may be something else at the same time.
 */
#pragma once

#include "analyzer/classify/reader.h"

enum { STALE_WORDS = 4 }; /* in which an allocator may have left links */

/* The words at the start of the block that are links of the allocator's lists, by bit. */
unsigned int text_find_stale(struct reader *reader, const struct subject *subject);

/* True if a word in [start, size) is an address and none of those links. */
bool text_has_address(struct reader *reader, const struct subject *subject, uint64_t start,
		      uint64_t size, unsigned int stale);
