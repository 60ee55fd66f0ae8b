/*
 * The index of a heap that is made up, for what asks no more of allocations than how large they
 * are: blocks of different sizes, one behind the other.
 */
#pragma once

#include "analyzer/heap/index.h"

#include "tests/assertions.h"

static inline uint64_t size_of(uint64_t id)
{
	return 8 + id % 100;
}

/* Make an index of count blocks. Those in is_free are free; NULL: none is. */
static inline struct allocation_index *index_make(struct memory_account *account, size_t count,
						  const bool *is_free)
{
	const uint64_t stride = 128, start = stride;
	_cleanup_(block_sink_destroy) struct block_sink *sink = NULL;
	struct allocation_index *index;

	assert_no_error(block_sink_create(account, &sink));
	assert_no_error(block_sink_region(sink, start, start + stride * count, 0));
	for (size_t i = 0; i < count; i++) {
		bool is_used = !is_free || !is_free[i];
		struct block block = { start + stride * i, size_of(i),
				       is_used ? BLOCK_USED : BLOCK_FREE };

		assert_no_error(block_sink_add(sink, block));
	}
	assert_no_error(allocation_index_create(sink, &index));
	return index;
}
