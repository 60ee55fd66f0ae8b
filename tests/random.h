/*
 * Numbers that look random, and are the same on each run.
 */
#pragma once

#include <stdint.h>

static uint64_t seed; /* setting it begins anew */

static inline uint64_t random_below(uint64_t bound)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (seed >> 33) % bound;
}
