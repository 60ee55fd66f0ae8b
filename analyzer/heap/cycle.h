/*
 * Lists that return to one of their members, as a block that was freed twice makes them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Finds a cycle of links, by Brent's algorithm. power is 1 at first, and mark where it may begin.
 */
struct cycle_search {
	uint64_t mark, steps, power;
};

/* True if the next place on the path closes a cycle. */
static inline bool cycle_closes(struct cycle_search *search, uint64_t place)
{
	if (place == search->mark)
		return true;
	if (++search->steps == search->power) {
		search->mark = place;
		search->power *= 2;
	}
	return false;
}

/*
 * The members of a list, count structures of so many bytes that begin with an address, go on with
 * next, which is one of them. Returns how many come before the first that repeats, which is *ret.
 */
size_t cycle_cut(const void *members, size_t bytes, size_t count, uint64_t next, uint64_t *ret);
