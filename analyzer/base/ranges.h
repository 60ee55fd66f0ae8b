/*
 * Ranges of addresses.
 */
#pragma once

#include "analyzer/base/array.h"

#include <stddef.h>
#include <stdint.h>

struct memory_range {
	uint64_t start, end; /* [start, end) */
};

struct range_list {
	ARRAY(struct memory_range);
};

/* Sort the ranges, and join those that overlap or touch; returns how many are left. */
size_t memory_ranges_join(struct memory_range *ranges, size_t count);
