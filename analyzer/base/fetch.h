/*
 * Has memory fetched that a pass over all of it reads next: the processor by itself fetches nothing
 * beyond a page.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* For size bytes of a pass upwards, fetch those a page further, if they are mapped. */
static inline void fetch_next_page(const uint8_t *bytes, size_t size)
{
	enum { AHEAD = 1 << 12, LINE = 64 };

	for (uintptr_t i = 0; i < size; i += LINE)
		__builtin_prefetch((const void *)((uintptr_t)bytes + AHEAD + i));
}
