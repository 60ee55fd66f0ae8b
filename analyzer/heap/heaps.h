/*
 * All heaps of the process, of all allocators, walked into one index.
 */
#ifndef ANALYZER_HEAP_HEAPS_H
#define ANALYZER_HEAP_HEAPS_H

#include "analyzer/base/side_file.h"
#include "analyzer/heap/allocator.h"
#include "analyzer/heap/index.h"
#include "analyzer/heap/nesting.h"

struct heaps;

/*
 * Open and walk what is there. That no allocator was understood, or that one is loaded which nobody
 * here understands, goes to the findings.
 */
struct error *heaps_create(const struct heap_context *context, struct heaps **ret);
void heaps_destroy(struct heaps *heaps);
DEFINE_CLEANUP(heaps_destroy, struct heaps *)

/* The index and the arenas into a side file. */
struct error *heaps_save(const struct heaps *heaps, struct side_writer *writer);

/*
 * The same heaps from a side file:
 * allocators are opened and walk when first something is asked that only they
 * know. The context is kept but for its findings, which are not added again.
 */
struct error *heaps_load(const struct heap_context *context, struct side_file *file,
			 struct heaps **ret);

/*
 * Open and walk them now, if they were not: for who asks from several threads, and what
 * allocation_stale_links() needs.
 */
struct error *heaps_wake(const struct heaps *heaps);

/* Whose lifetime is that of heaps. */
const struct allocation_index *heaps_index(const struct heaps *heaps);

/*
 * What an allocator uses an address for: one of its bookkeeping, or the start of a free block, as
 * what follows "it is". False if there is nothing to say.
 */
bool heaps_tell(const struct heaps *heaps, uint64_t address, char *ret, size_t size);

/* Whether a collector in the process may mark more than it finds by itself. */
enum more_roots heaps_more_roots(const struct heaps *heaps);

/* What an allocator knows of the used block at start, in the same way. */
bool heaps_tell_used(const struct heaps *heaps, uint64_t start, char *ret, size_t size);

/*
 * Where the free allocation is kept by its allocator. What is unsorted counts as large or small
 * unless heaps_sort_free() comes first. Quick for going over all in order: *hint is 0 at first.
 */
struct error *heaps_sort_free(const struct heaps *heaps);
const struct free_kind *heaps_free_kind(const struct heaps *heaps, allocation_id id, size_t *hint);

/*
 * Visit the whole pages of free memory that allocators give back when asked to, and those at the
 * ends of heaps that they keep; see the contract.
 */
void heaps_visit_spare(const struct heaps *heaps,
		       void (*visit)(void *data, const struct spare *spare), void *data);

/* The heaps, one for each allocator, and the number of the first arena. */
size_t heaps_count(const struct heaps *heaps);
const struct heap *heaps_heap(const struct heaps *heaps, size_t number, arena_number *ret_first);

/*
 * What the heap's allocator claims for itself, in any order; ranges may overlap with each other and
 * with regions.
 */
const struct memory_range *heaps_bookkeeping(const struct heaps *heaps, size_t number,
					     size_t *ret_count);

/* The allocation whose header address is in, or NO_ALLOCATION. */
allocation_id heaps_find_header(const struct heaps *heaps, uint64_t address);

/* The number-th block that has a nested heap in it, by address; NULL: no more. */
const struct outer_block *heaps_outer_block(const struct heaps *heaps, size_t number);

/* The one that address is in, or NULL. */
const struct outer_block *heaps_find_outer_block(const struct heaps *heaps, uint64_t address);

size_t heaps_arena_count(const struct heaps *heaps);
struct arena heaps_arena(const struct heaps *heaps, arena_number number);
const struct allocator *heaps_arena_allocator(const struct heaps *heaps, arena_number number);

#endif
