/*
 * The bins of an arena: free chunks on lists that link both ways. What is in
 * them is known to be free without them; that their links fit is a check, and
 * their members are places to go on from behind damage.
 */
#ifndef ALLOCATORS_GLIBC_BINS_H
#define ALLOCATORS_GLIBC_BINS_H

#include "allocators/glibc/glibc.h"

/* "unsorted bin" or the like; number counts from 1, as in malloc.c. */
const char *glibc_bin_kind(uint64_t number);

/*
 * Report the broken lists, and the bins whose links do not fit each other. On
 * the way, heap->unsorted is filled.
 */
struct error *glibc_check_lists(struct glibc_heap *heap,
				struct block_sink *sink);

/* Fill heap->vouched with the chunks that any list or an arena names. */
struct error *glibc_collect_vouched(struct glibc_heap *heap);

#endif
