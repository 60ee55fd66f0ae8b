/*
 * Reads what is near each other in an image without searching for its region each time. It
 * remembers where it read last: each thread has one of its own.
 */
#pragma once

#include "analyzer/image/image.h"

#include <string.h>

/* { image } is a view that has not read anything yet. */
struct view {
	const struct image *image;
	uint64_t start, size; /* of the region read last */
	const uint8_t *bytes;
	uint64_t least; /* bytes to read a word of 8; none are enough where words are of 4 */
};

/* Make the region of address the one read last; false if it is absent. */
bool view_move(struct view *view, uint64_t address);

/* The bytes at address, *ret_size of them in a row; NULL if absent. */
static inline const uint8_t *view_bytes(struct view *view, uint64_t address, uint64_t *ret_size)
{
	if (address - view->start >= view->size && !view_move(view, address))
		return NULL;
	*ret_size = view->size - (address - view->start);
	return view->bytes + (address - view->start);
}

/*
 * Copy size bytes at address, across regions. False if any is absent. It is here, as to copy a few
 * is quick where the compiler knows how many.
 */
static inline bool view_read(struct view *view, uint64_t address, void *ret, size_t size)
{
	uint64_t known;
	const uint8_t *bytes = view_bytes(view, address, &known);

	if (!bytes)
		return false;
	if (known < size)
		return image_read(view->image, address, ret, size);
	memcpy(ret, bytes, size);
	return true;
}

/* Read a word of 4 bytes, or one that crosses regions. */
bool view_odd_word(const struct view *view, uint64_t address, const uint8_t *bytes, uint64_t known,
		   uint64_t *ret);

static inline bool view_word(struct view *view, uint64_t address, uint64_t *ret)
{
	uint64_t known;
	const uint8_t *bytes = view_bytes(view, address, &known);

	if (!bytes)
		return false;
	if (known < view->least)
		return view_odd_word(view, address, bytes, known, ret);
	memcpy(ret, bytes, sizeof(*ret));
	return true;
}

/* Fetch what may be read soon, if it is in the same region. */
static inline void view_fetch(const struct view *view, uint64_t address)
{
	if (address - view->start < view->size)
		__builtin_prefetch(view->bytes + (address - view->start));
}

/*
 * The end of anonymous memory without a gap, from address up to end at most. A program that
 * protects pages of its heap splits the mapping.
 */
uint64_t view_reach(const struct view *view, uint64_t address, uint64_t end);

/* True if the process had memory at address that the core lacks. */
bool view_is_absent(const struct view *view, uint64_t address);
