/*
 * Walking chunks of which nothing but headers has to be read.
 *
 * Nearly all chunks of a heap are such: sound, as the next one is, on no list of those that look
 * used, and not top. Their state is a bit in the header of the next. Whatever else comes is left to
 * chunks.c, which looks at each chunk closely; both tell the same of a plain one.
 */
#ifndef ALLOCATORS_GLIBC_PLAIN_H
#define ALLOCATORS_GLIBC_PLAIN_H

#include "allocators/glibc/walk.h"

/*
 * Add plain chunks from *chunk on that begin below stop, at most some thousand, and leave in *chunk
 * the first that was not added.
 */
struct error *glibc_walk_plain(struct walk *walk, uint64_t *chunk, uint64_t stop);

#endif
