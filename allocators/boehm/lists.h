/*
 * Which objects of a collector are free: those on its lists.
 *
 * For each kind and each size there is a list of free objects, linked by their first word; each
 * thread has short ones of its own. GC_arrays has the heads of the first four kinds in a row, and
 * behind them size_map, which tells how many granules an object of so many bytes takes: its numbers
 * are the same in all versions, and so it is found by them.
 *
 *	objfreelist  aobjfreelist  uobjfreelist  auobjfreelist  size_map
 *	| 129 heads  | 129 heads   | 129 heads   | 129 heads    | 1 1 1 ... 2 2
 */
#ifndef ALLOCATORS_BOEHM_LISTS_H
#define ALLOCATORS_BOEHM_LISTS_H

#include "allocators/boehm/boehm.h"

/* Whether size_map is at address, and what it says of the extra byte. */
bool boehm_is_size_map(struct view *view, uint64_t address, bool *ret_extra);

/* Find the lists, and fill in what is free. */
struct error *boehm_read_lists(struct collector *collector, const struct heap_context *context);

/* How many heads the lists of a kind have. */
static inline uint64_t list_heads(const struct collector *collector)
{
	return largest_small(collector) / GRANULE + 1;
}

#endif
