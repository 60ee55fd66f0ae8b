#include "allocators/glibc/extents.h"

static const struct glibc_heap *of(const struct heap *heap)
{
	return (const struct glibc_heap *)heap;
}

struct memory_range glibc_extent(const struct heap *heap, size_t number,
				 struct block block, enum free_kind kind)
{
	uint64_t chunk = block.start - HEADER, end = block.start + block.size;

	if (number == of(heap)->arena_count)
		return (struct memory_range){ 0, UINT64_MAX };
	/* Top lends nothing of a next one. */
	if (block.state != BLOCK_FREE || kind != FREE_TOP)
		end -= 8;
	return (struct memory_range){ chunk, end };
}

bool glibc_keeps(const struct heap *heap, struct block block)
{
	uint64_t size = block.size + 8;

	return (size == 0x250 || size == 0x290 || size == 0x300) &&
	       number_list_has(&of(heap)->tcaches, block.start);
}

size_t glibc_holds(const struct heap *heap, uint64_t address)
{
	const struct glibc_subheap *subheaps = of(heap)->subheaps;
	size_t low = 0, high = of(heap)->subheap_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (subheaps[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < of(heap)->subheap_count && subheaps[low].start <= address
		       ? subheaps[low].arena
		       : NO_ARENA;
}

bool glibc_reserved(const struct heap *heap, size_t number,
		    struct memory_range *ret)
{
	const struct glibc_subheap *subheap = &of(heap)->subheaps[number];

	if (number >= of(heap)->subheap_count)
		return false;
	*ret = (struct memory_range){ subheap->end, subheap->limit };
	return true;
}
