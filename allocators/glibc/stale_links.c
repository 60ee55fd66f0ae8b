#include "allocators/glibc/stale_links.h"

/* Whether word is the address of a bin, or of anything else in an arena. */
static bool is_in_arena(const struct glibc_heap *heap, uint64_t word)
{
	const uint64_t *all = numbers(&heap->arena_addresses);
	size_t low = 0, high = heap->arena_addresses.count;

	if (word < heap->lowest_arena || word >= heap->end_of_arenas)
		return false;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (all[middle] <= word)
			low = middle;
		else
			high = middle;
	}
	return word - all[low] < heap->arenas[0].layout->size;
}

static bool is_chunk(const struct allocation_index *index, uint64_t word)
{
	allocation_id id;

	if (word % 16 != 0)
		return false;
	id = allocation_find(index, word + HEADER);
	return id != NO_ALLOCATION && allocation_start(index, id) == word + HEADER;
}

/*
 * fd and bk, then fd_nextsize and bk_nextsize of a large chunk. No program points at chunks: they
 * begin in the end of the allocation below.
 */
unsigned int glibc_stale_links(const struct glibc_heap *heap, const struct allocation_index *index,
			       uint64_t start, const uint64_t words[4])
{
	uint64_t chunk = start - HEADER;
	bool in_arena[2];
	unsigned int mask = 0;

	mask |= (unsigned int)(words[2] == chunk) << 2;
	mask |= (unsigned int)(words[3] == chunk) << 3;
	/* Nearly all blocks are done here. */
	if ((words[0] | words[1]) % 16 != 0 || !words[0] || !words[1])
		return mask;
	in_arena[0] = is_in_arena(heap, words[0]);
	in_arena[1] = is_in_arena(heap, words[1]);
	if ((in_arena[0] || is_chunk(index, words[0])) &&
	    (in_arena[1] || is_chunk(index, words[1])))
		mask |= 0x3;
	return mask;
}
