/*
 * What malloc got from mmap() without a list of it anywhere: chunks of their own, and pieces of a
 * main arena that could not grow by sbrk().
 *
 * The kernel merges neighbouring mappings, so these may begin anywhere in one.
 *
 *	                page                               page
 *	| not malloc's  | 0 | size+2 | user's memory ...    |
 *	                page                               page
 *	aligned:        | unused | prev | size+2 | user's memory ... |
 *	                         prev = from the page to here
 *
 * From glibc 2.43 on, size leaves out the last 16 bytes of the mapping, and the program may use 8
 * of them.
 */
#ifndef ALLOCATORS_GLIBC_MAPPED_H
#define ALLOCATORS_GLIBC_MAPPED_H

#include "allocators/glibc/glibc.h"

/*
 * Walk the heaps of the arenas that are not main ones, and what is found in the anonymous memory
 * behind which no arena is known, in order of address. done is the memory walked before, sorted.
 */
struct error *glibc_walk_mapped(struct glibc_heap *heap, struct block_sink *sink,
				const struct memory_range *done, size_t done_count);

#endif
