/*
 * Words that CPython does not use any more, or never wrote: what they lead to is not held by them.
 *
 * Where an object ends is known from its type and number of items; a block of the allocator is
 * larger by up to 15 bytes, which hold what was there before. So do the bytes behind a string, what
 * stands before and behind the values of attributes, and stacks of frames above their top.
 */
#pragma once

#include "analyzer/runtimes/python/space.h"

/* Find what python_is_stale() needs, once all objects are known. */
struct error *python_stale_find(struct python *python);

/* True if the word at place, outside of all allocations, is a stale reference to target. */
bool python_is_stale(const struct python *python, allocation_id target, uint64_t place);

/* Like python_is_stale(), in the allocation source, which is no object. */
bool python_is_stale_in_block(const struct python *python, allocation_id source,
			      allocation_id target, uint64_t place);

/*
 * Like python_is_stale_in_block(), in an object of that type; range: from its count up to the end
 * of its block.
 */
bool python_is_stale_in_object(const struct python *python, const struct python_type *type,
			       struct memory_range range, uint64_t place);
