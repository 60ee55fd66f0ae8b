/*
 * Lists of free chunks: thread caches, fast bins and bins; and chunks that a thread was moving.
 *
 * A chunk in a thread's cache or a fast bin looks used: only these lists say that it is free. From
 * glibc 2.32 on (and where it was backported) a link is mangled: the stored word is the target
 * exclusive-or the link's own address >> 12.
 */
#pragma once

#include "allocators/glibc/glibc.h"

/* True if a chunk of that size can be a thread's cache. */
bool glibc_has_cache_size(uint64_t size, unsigned int word);

/* Like glibc_has_cache_size(), without a call for nearly all sizes. */
static inline bool glibc_may_be_cache(uint64_t size, unsigned int word)
{
	const uint64_t smallest = word == 4 ? 0x150 : 0x250, largest = word == 4 ? 0x1e0 : 0x310;

	return size >= smallest && size <= largest && glibc_has_cache_size(size, word);
}

/* True if the memory at user, of such a size, can be a cache by its fields. */
bool glibc_looks_like_cache(const struct glibc_heap *heap, uint64_t user);

/*
 * Collect the members of the threads' caches and of the fast bins, into heap->cached and
 * heap->fast. A broken list ends there, and is kept to be reported; a long one may be put off.
 */
struct error *glibc_collect_lists(struct glibc_heap *heap);

/* Keep the list, to be reported when the blocks are known. The wrong link leads to next. */
struct error *glibc_note_broken(struct glibc_heap *heap, struct glibc_broken_list list,
				uint64_t next);

/*
 * With all blocks in the sink: find caches that no thread was seen to point at, among
 * heap->suspects, and members of broken lists, by their contents, and set the states of blocks.
 */
struct error *glibc_settle_lists(struct glibc_heap *heap, struct block_sink *sink);

/*
 * The thread's cache that holds the memory at user, and its thread, or NO_THREAD. False if none
 * does.
 */
bool glibc_find_cache(const struct glibc_heap *heap, uint64_t user, uint64_t *ret_tcache,
		      uint32_t *ret_thread);

/*
 * fast_links.c: fast bins with long lists, in a dump that does not fit into memory. To follow such
 * a list reads a page of the dump for each chunk, in any order. So that is put off: the walk, which
 * passes all chunks in order, notes each that may be in a fast bin, and its link; the lists are
 * followed among these, in memory.
 */

/* Note the chunk, if it may be a member of a fast bin. */
struct error *glibc_note_fast(struct glibc_heap *heap, struct view *view, uint64_t chunk,
			      uint64_t size);

/*
 * With all blocks in the sink: follow the lists that were put off. Members are added to heap->fast,
 * and become free. A broken list ends there, and is kept to be reported.
 */
struct error *glibc_follow_fast(struct glibc_heap *heap, struct block_sink *sink);

/*
 * bins.c: lists that link both ways. Their members are known to be free without them. That their
 * links fit is a check, and from members the walk goes on behind damage.
 */

/* "unsorted bin" or the like; number counts from 1, as in malloc.c. */
const char *glibc_bin_kind(uint64_t number);

/*
 * Add up the links of a free chunk. Once those of all chunks and of the bins' heads are added, the
 * pairs of a chunk and its next one are those of a previous chunk and its chunk, unless links are
 * wrong. So the sums of both are equal, in any order. Then lists need not be followed all over a
 * heap that may be larger than memory.
 */
void glibc_add_links(struct glibc_links *links, struct view *view, uint64_t chunk, uint64_t size);

/*
 * blame.c: say which block was overrun, written to after it was freed, or freed twice. work and
 * what_follows end the sentence.
 */
void glibc_report_broken(const struct glibc_heap *heap, const struct block_sink *sink,
			 const struct glibc_broken_list *list, const char *work,
			 const char *what_follows);
void glibc_report_feet(const struct glibc_heap *heap);
/* True if a list is broken by the block at user. */
bool glibc_is_blamed(const struct glibc_heap *heap, uint64_t user);

/* Report the broken lists, and the bins whose links do not fit each other. */
struct error *glibc_check_lists(struct glibc_heap *heap, struct block_sink *sink);

/* The slot sort_free: fill heap->unsorted, if it is not; the index is that of the walk. */
struct error *glibc_find_unsorted(struct heap *base, const struct allocation_index *index);

/* Fill heap->vouched with the chunks that any list or an arena names. */
struct error *glibc_collect_vouched(struct glibc_heap *heap);

/*
 * transit.c: chunks that a thread inside malloc was moving when the core was taken, in no list and
 * known by their chunk address only.
 */

/*
 * Find the arenas that a thread was changing: heap->arenas[].locked. None, if the process died
 * inside malloc or near it: there, the heap is damaged. But if another thread's fault ended the
 * process, the threads at work had done no wrong.
 */
void glibc_find_work(struct glibc_heap *heap);

/* The note to add to a report of damage in the arena, or in any of them; or "". */
const char *glibc_tell_work(const struct glibc_arena *arena);
const char *glibc_tell_any_work(const struct glibc_heap *heap);

/* Make the sink keep the chunks that registers and inner frames refer to. */
struct error *glibc_hold_transit(struct glibc_heap *heap, struct block_sink *sink);
