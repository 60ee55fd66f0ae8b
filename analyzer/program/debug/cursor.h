/*
 * Reading the bytes of a section of debug information from one end to the other. What is read
 * behind the end is 0, and the cursor is at its end then.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
	const uint8_t *at, *end;
};

static inline size_t cursor_left(const struct cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

static inline void cursor_skip(struct cursor *cursor, uint64_t size)
{
	if (size > cursor_left(cursor))
		cursor->at = cursor->end;
	else
		cursor->at += size;
}

/* A number of 1, 2, 4 or 8 bytes. */
static inline uint64_t cursor_number(struct cursor *cursor, size_t size)
{
	const uint8_t *from = cursor->at;
	uint64_t number = 0;

	if (size > cursor_left(cursor)) {
		cursor->at = cursor->end;
		return 0;
	}
	cursor->at += size;
	/* Calls of memcpy() are expanded only for sizes that are constant. */
	switch (size) {
	case 1:
		return *from;
	case 2:
		memcpy(&number, from, 2);
		return number;
	case 4:
		memcpy(&number, from, 4);
		return number;
	default:
		memcpy(&number, from, 8);
		return number;
	}
}

/* LEB128 */
static inline uint64_t cursor_unsigned(struct cursor *cursor)
{
	uint64_t number = 0;

	for (unsigned int shift = 0; cursor->at < cursor->end; shift += 7) {
		uint8_t byte = *cursor->at++;

		if (shift < 64)
			number |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return number;
}

static inline int64_t cursor_signed(struct cursor *cursor)
{
	uint64_t number = 0;
	unsigned int shift = 0;
	uint8_t byte = 0;

	while (cursor->at < cursor->end) {
		byte = *cursor->at++;
		if (shift < 64)
			number |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80))
			break;
	}
	if (shift < 64 && (byte & 0x40))
		number |= ~UINT64_C(0) << shift;
	return (int64_t)number;
}

/* The text up to its end, which is skipped too; NULL if it has none. */
static inline const char *cursor_text(struct cursor *cursor)
{
	const uint8_t *start = cursor->at;
	const uint8_t *end = start ? memchr(start, 0, cursor_left(cursor)) : NULL;

	if (!end) {
		cursor->at = cursor->end;
		return NULL;
	}
	cursor->at = end + 1;
	return (const char *)start;
}

/* The length that units begin with; *ret_width is that of offsets: 4 or 8. */
static inline uint64_t cursor_length(struct cursor *cursor, size_t *ret_width)
{
	uint64_t length = cursor_number(cursor, 4);

	*ret_width = 4;
	if (length == UINT32_MAX) {
		*ret_width = 8;
		length = cursor_number(cursor, 8);
	}
	return length;
}
