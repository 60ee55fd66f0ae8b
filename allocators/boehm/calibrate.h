/*
 * Which build of the collector wrote the headers: what differs between builds is decided by the
 * vote of all headers.
 */
#ifndef ALLOCATORS_BOEHM_CALIBRATE_H
#define ALLOCATORS_BOEHM_CALIBRATE_H

#include "allocators/boehm/boehm.h"

/* Decide the variant of the headers and of the marks. */
void boehm_calibrate(struct collector *collector, const struct image *image);

/* The marks of a block's objects. */
struct marks {
	uint8_t bytes[(1 << 16) / GRANULE + 1]; /* of the largest blocks */
};

/* Read the marks of the block, none if they are not in the dump. */
void boehm_read_marks(const struct collector *collector, const struct image *image,
		      const struct boehm_block *block, struct marks *ret);

/* Whether the block's slot-th object is marked. */
bool boehm_is_marked(const struct collector *collector, const struct boehm_block *block,
		     const struct marks *marks, uint64_t slot);

/* How large a header is, with its marks. */
uint64_t boehm_header_size(const struct collector *collector);

#endif
