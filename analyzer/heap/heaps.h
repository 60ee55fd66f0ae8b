/*
 * All heaps of the process, of all allocators, walked into one index.
 */
#pragma once

#include "analyzer/base/side_file.h"
#include "analyzer/heap/allocator.h"
#include "analyzer/heap/index.h"
#include "analyzer/heap/nesting.h"

struct heaps;

/*
 * Open and walk the heaps. Adds a finding if no allocator was recognised, or if one is loaded that
 * is unsupported.
 */
struct error *heaps_create(const struct heap_context *context, struct heaps **ret);
void heaps_destroy(struct heaps *heaps);
DEFINE_CLEANUP(heaps_destroy, struct heaps *)

/* Save the index and the arenas in a side file. */
struct error *heaps_save(const struct heaps *heaps, struct side_writer *writer);

/*
 * Load the same heaps from a side file. Allocators are opened and walk at the first question that
 * only they can answer. The context is kept; nothing is added to its findings again.
 */
struct error *heaps_load(const struct heap_context *context, struct side_file *file,
			 struct heaps **ret);

/* Open and walk them now if not done yet: before several threads ask, or allocation_stale_links().
 */
struct error *heaps_wake(const struct heaps *heaps);

/* Lives as long as the heaps. */
const struct allocation_index *heaps_index(const struct heaps *heaps);

/*
 * Called by runtimes, before references are read: words have these bits beside an address; a
 * collector of a language frees those allocations, which its allocator does not know.
 */
void heaps_ignore_bits(const struct heaps *heaps, uint64_t bits);
struct error *heaps_set_collectable(const struct heaps *heaps, const struct bitmap *set);

/*
 * Describe what an allocator uses an address of its bookkeeping, or the start of a free block, for:
 * the words after "it is". False if there is nothing to say.
 */
bool heaps_tell(const struct heaps *heaps, uint64_t address, char *ret, size_t size);

/* Says whether a collector in the process may mark more than it finds by itself. */
enum more_roots heaps_more_roots(const struct heaps *heaps);

/* Describe what an allocator knows of the used block at start, in the same way. */
bool heaps_tell_used(const struct heaps *heaps, uint64_t start, char *ret, size_t size);

/*
 * The list on which the allocator keeps the free allocation. Without heaps_sort_free(), unsorted
 * blocks count as large or small. Quick for ids in order: *hint is 0 at first.
 */
struct error *heaps_sort_free(const struct heaps *heaps);
const struct free_kind *heaps_free_kind(const struct heaps *heaps, allocation_id id, size_t *hint);

/*
 * Visit the whole pages of free memory that allocators give back when asked to, and those at the
 * ends of heaps that they keep; see the contract.
 */
void heaps_visit_spare(const struct heaps *heaps,
		       void (*visit)(void *data, const struct spare *spare), void *data);

/* Visit the units that are used or given back as a whole; see the contract. */
struct error *heaps_visit_units(const struct heaps *heaps, unit_visit visit, void *data);

/* The heaps, one for each allocator. */
size_t heaps_count(const struct heaps *heaps);
const struct heap *heaps_heap(const struct heaps *heaps, size_t number);

/* The heap that the arena is one of. */
const struct heap *heaps_heap_of(const struct heaps *heaps, arena_number arena);

/* The heap of that allocator, which is opened and walked by now; NULL: the process has none. */
struct error *heaps_find(const struct heaps *heaps, const struct allocator *allocator,
			 const struct heap **ret);

/* Find what notes the calls of each block, and can be asked for one; NULL: nothing does. */
struct error *heaps_find_noting(const struct heaps *heaps, const struct noting **ret,
				void **ret_owner);

/*
 * The ranges that the allocator claims for itself, unsorted; they may overlap each other and
 * regions.
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
