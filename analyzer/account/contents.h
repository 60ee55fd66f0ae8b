/*
 * Checks the contents of ranges of memory: whether they are all zero, their hash, and whether two
 * are equal.
 *
 * Long ones are read piece by piece, and holes of the dump, which are zero, not at all: a stretch
 * may be terabytes that were reserved and never touched.
 */
#pragma once

#include "analyzer/base/progress.h"
#include "analyzer/image/view.h"

struct digest {
	uint64_t hash; /* the same for equal contents of equal size */
	/* All behind the last byte that is not zero; the size: all are. */
	uint64_t zeros;
};

/* False if any of the size bytes at address, at least one, is absent. */
bool contents_digest(struct view *view, uint64_t address, uint64_t size, struct digest *ret);

/* True if the size bytes at both addresses, each read by its view, are in the dump and equal. */
bool contents_equal(struct view *left, uint64_t address, struct view *right, uint64_t other,
		    uint64_t size);

/*
 * The length of the text at bytes, an end by 0 not counted: characters that can be shown, spaces
 * and ends of lines; other than ASCII if they are UTF-8. 0 if there is none, or no end of it among
 * the size bytes.
 */
uint64_t contents_text(const uint8_t *bytes, uint64_t size);
