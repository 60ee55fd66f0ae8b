/*
 * The sizes that the Boehm collector gives, for runtimes that know what their objects asked for.
 *
 * GC_extend_size_map() in bdwgc's misc.c: small sizes are multiples of 16; those that leave much of
 * a block unused are made larger by up to an eighth, and then as large as their number in a block
 * allows. Now and then, 8.2.2 was seen to give 16 bytes more.
 */
#pragma once

#include "analyzer/base/macros.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * True if an object of that size was made for wanted and extra bytes. Most runtimes add one byte,
 * so that a pointer to the end of an object points into it.
 */
static inline bool boehm_rounds_to(uint64_t size, uint64_t wanted, unsigned int extra)
{
	enum { UNIT = 16, BLOCK = 4096, SMALL = BLOCK / 2 };
	uint64_t least = (wanted + extra + UNIT - 1) / UNIT * UNIT, most;

	if (size < wanted || least == 0)
		return false;
	if (least > SMALL)
		return size - wanted < BLOCK + UNIT;
	most = least + least / 7;
	most = BLOCK / (BLOCK / most) / UNIT * UNIT;
	return size <= MAX(most, least) + UNIT;
}
