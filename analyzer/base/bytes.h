/*
 * Runs of bytes.
 */
#ifndef ANALYZER_BASE_BYTES_H
#define ANALYZER_BASE_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Whether there are none but zeros: each is as the one before it. */
static inline bool bytes_are_zero(const uint8_t *bytes, size_t size)
{
	return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

#endif
