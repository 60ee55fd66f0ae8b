/*
 * Walking stretches of heap in pieces, by several threads.
 *
 *	stretch   | piece            | piece            | piece         |
 *	front     |----------------->|=>|               |
 *	threads   |----------------->|  |------------------>|=>|-------->
 *	                                row
 *
 * Only the chunk below says where a chunk begins. So what a thread finds from the middle of a
 * stretch, behind a row of chunks that looks sound, is believed once the walk from the front comes
 * to the same chunk: from there on both must find the same. Where it does not, or where more than
 * chunks is to be told of, the piece is walked from the front. So the answer is that of a walk by
 * one thread.
 */
#ifndef ALLOCATORS_GLIBC_PIECES_H
#define ALLOCATORS_GLIBC_PIECES_H

#include "allocators/glibc/walk.h"

/*
 * Walk the stretches in order, and report their blocks. Where each walk ended, behind top or the
 * last fence, is left in its end. Before a stretch begins, begin(data, number) is called, if there
 * is such a function; others may be under way, but none of it is reported.
 */
struct error *glibc_walk_stretches(struct glibc_heap *heap, struct block_sink *sink,
				   struct glibc_stretch *stretches, size_t count,
				   struct error *(*begin)(void *data, size_t number), void *data);

#endif
