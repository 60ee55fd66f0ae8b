/*
 * A core that holds bytes of the fuzzer's choice at a few addresses.
 */
#pragma once

#include "analyzer/image/image.h"

struct memory_part {
	uint64_t start;
	unsigned int rights;
	const uint8_t *bytes;
	size_t size; /* up to the next page it is zeros */
};

/* findings outlive the image. */
struct image *memory_open(const struct memory_part *parts, size_t count, struct findings *findings);
