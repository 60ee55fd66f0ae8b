/*
 * Blocks that objects of CPython have for themselves, and which of their words mean nothing: the
 * items of lists, the keys of dicts, values of attributes, the entries of sets, the blocks of
 * deques and buffers of bytes.
 */
#pragma once

#include "analyzer/runtimes/python/space.h"

/* Fields of deques from 3.12 on, which keep some free blocks for themselves. */
enum {
	DEQUE_FREE_COUNT = 72,
	DEQUE_FREE_BLOCKS = 80,
	MOST_FREE_BLOCKS = 16,
	DEQUE_WITH_FREE_BLOCKS = DEQUE_FREE_BLOCKS + 8 * MOST_FREE_BLOCKS,
};

/* Find and mark them, once all objects are known. */
struct error *python_blocks_find(struct python *python);

/* True if the word at place in the block, which has a mark, is a stale reference to target. */
bool python_blocks_are_stale(const struct python *python, allocation_id block, allocation_id target,
			     uint64_t place);

/* True if it has keys of a dict that was freed, with at most so many references. */
bool python_blocks_are_free_keys(struct view *view, struct memory_range range, uint64_t most);

/* The object that the block, which has a mark, is of; NO_ALLOCATION: that is not known. */
allocation_id python_blocks_owner(const struct python *python, allocation_id block);
