/*
 * Reads words of an image that are near each other without searching for their
 * region each time.
 */
#ifndef ANALYZER_IMAGE_VIEW_H
#define ANALYZER_IMAGE_VIEW_H

#include "analyzer/image/image.h"

/* { image } is a view that has not read anything yet. */
struct view {
	const struct image *image;
	uint64_t start, size;
	const uint8_t *bytes;
};

bool view_move(struct view *view, uint64_t address, uint64_t *ret);

static inline bool view_word(struct view *view, uint64_t address, uint64_t *ret)
{
	uint64_t offset = address - view->start;

	if (offset < view->size && view->size - offset >= sizeof(*ret)) {
		__builtin_memcpy(ret, view->bytes + offset, sizeof(*ret));
		return true;
	}
	return view_move(view, address, ret);
}

/* Fetch what may be read soon, if it is in the same region. */
static inline void view_fetch(const struct view *view, uint64_t address)
{
	if (address - view->start < view->size)
		__builtin_prefetch(view->bytes + (address - view->start));
}

/*
 * How far anonymous memory reaches without a gap, from address up to end at
 * most. A program that protects pages of its heap splits the mapping.
 */
uint64_t view_reach(const struct view *view, uint64_t address, uint64_t end);

/* Whether the process had memory at address that the core does not have. */
bool view_is_absent(const struct view *view, uint64_t address);

#endif
