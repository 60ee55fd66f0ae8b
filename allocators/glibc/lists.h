/*
 * The lists of chunks that are free but look used: thread caches and fast bins.
 *
 * A cached chunk and one in a fast bin look used; only these lists tell. From glibc 2.32 on (and
 * where it was backported) a link is mangled: the stored word is the target exclusive-or the link's
 * own address >> 12.
 */
#ifndef ALLOCATORS_GLIBC_LISTS_H
#define ALLOCATORS_GLIBC_LISTS_H

#include "allocators/glibc/glibc.h"

/* Whether a chunk of that size can be a thread's cache. */
bool glibc_has_cache_size(uint64_t size);

/* The same, without a call for nearly all sizes. */
static inline bool glibc_may_be_cache(uint64_t size)
{
	enum { SMALLEST = 0x250, LARGEST = 0x310 };

	return size >= SMALLEST && size <= LARGEST && glibc_has_cache_size(size);
}

/* Keep the list to be reported when the blocks are known. The wrong link leads to next. */
struct error *glibc_note_broken(struct glibc_heap *heap, struct glibc_broken_list list,
				uint64_t next);

/* Whether what stands in such memory, at user, can be the fields of one. */
bool glibc_looks_like_cache(const struct glibc_heap *heap, uint64_t user);

/*
 * Collect what the caches of the threads and the fast bins hold, into heap->cached and heap->fast.
 * A broken list is kept to be reported, and ends there; a long one may be put off (fast_links.h).
 */
struct error *glibc_collect_lists(struct glibc_heap *heap);

/*
 * With all blocks in the sink: find caches that no thread was seen to point at, among
 * heap->suspects, and members of lists that are broken, by their contents; put their states right.
 */
struct error *glibc_settle_lists(struct glibc_heap *heap, struct block_sink *sink);

/*
 * The thread's cache that holds the memory at user, and whose it is, or NO_THREAD. False if none
 * does.
 */
bool glibc_find_cache(const struct glibc_heap *heap, uint64_t user, uint64_t *ret_tcache,
		      uint32_t *ret_thread);

#endif
