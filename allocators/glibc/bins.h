/*
 * The bins of an arena: free chunks on lists that link both ways. What is in them is known to be
 * free without them; that their links fit is a check, and their members are places to go on from
 * behind damage.
 */
#ifndef ALLOCATORS_GLIBC_BINS_H
#define ALLOCATORS_GLIBC_BINS_H

#include "allocators/glibc/glibc.h"

/* "unsorted bin" or the like; number counts from 1, as in malloc.c. */
const char *glibc_bin_kind(uint64_t number);

/*
 * Add up the links of a chunk that is free. If all are added, and the bins' heads, then the pairs
 * of a chunk and the one that it names as next are those of a chunk named as previous and the one
 * that does, unless links are wrong. So are the sums of both, whatever the order. Following the
 * lists, all over a heap that may be larger than memory, can be saved then.
 */
void glibc_add_links(struct glibc_links *links, struct view *view, uint64_t chunk);

/* Report the broken lists, and the bins whose links do not fit each other. */
struct error *glibc_check_lists(struct glibc_heap *heap, struct block_sink *sink);

/* Fill heap->unsorted, if it is not; the index is that of the walk. */
struct error *glibc_find_unsorted(struct glibc_heap *heap, const struct allocation_index *index);

/* Fill heap->vouched with the chunks that any list or an arena names. */
struct error *glibc_collect_vouched(struct glibc_heap *heap);

#endif
