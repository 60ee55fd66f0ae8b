#include "allocators/glibc/extents.h"

#include "allocators/glibc/lists.h"
#include "analyzer/base/list.h"

enum { ALIGNMENT = 16 };

static const struct glibc_heap *of(const struct heap *heap)
{
	return (const struct glibc_heap *)heap;
}

struct memory_range glibc_extent(const struct heap *heap, size_t number, struct block block,
				 const struct free_kind *kind)
{
	uint64_t chunk = block.start - HEADER, end = block.start + block.size;

	if (number == of(heap)->arena_count)
		return (struct memory_range){ 0, UINT64_MAX };
	/* Top lends nothing of a next one. */
	if (!kind || !kind->ends_heap)
		end -= 8;
	return (struct memory_range){ chunk, end };
}

bool glibc_keeps(const struct heap *heap, struct block block)
{
	return glibc_may_be_cache(block.size + 8) &&
	       number_list_has(&of(heap)->tcaches, block.start);
}

/* How much of malloc's alignment is missing at the start of a main heap. */
static uint64_t padding_of(const struct glibc_arena *arena)
{
	uint64_t lacks = arena->stated_size - arena->size;

	return arena->main && lacks < ALIGNMENT ? lacks : 0;
}

struct error *glibc_claim_padding(const struct glibc_heap *heap, struct block_sink *sink)
{
	struct error *error = NULL;
	size_t number = 0;

	for (size_t i = 0; i < heap->arena_count && !error; i++) {
		uint64_t base, padding = padding_of(&heap->arenas[i]);

		if (!heap->arenas[i].main)
			continue;
		base = heap->parameters[number++].base;
		if (padding && base > padding)
			error = block_sink_claim(sink, base - padding, base);
	}
	return error;
}

/* The main arena whose heap begins behind address, or NO_ARENA. */
static size_t find_padded(const struct glibc_heap *heap, uint64_t address)
{
	for (size_t i = 0; i < heap->parameters_count; i++) {
		const struct glibc_parameters *parameters = &heap->parameters[i];
		const struct glibc_arena *arena = &heap->arenas[parameters->arena];

		if (parameters->base - address - 1 < padding_of(arena))
			return parameters->arena;
	}
	return NO_ARENA;
}

size_t glibc_holds(const struct heap *heap, uint64_t address)
{
	const struct glibc_subheap *subheaps = of(heap)->subheaps;
	size_t low = LIST_ABOVE(subheaps, of(heap)->subheap_count, end, address);

	return low < of(heap)->subheap_count && subheaps[low].start <= address
		       ? subheaps[low].arena
		       : find_padded(of(heap), address);
}

bool glibc_reserved(const struct heap *heap, size_t number, struct memory_range *ret)
{
	const struct glibc_subheap *subheap;

	if (number >= of(heap)->subheap_count)
		return false;
	subheap = &of(heap)->subheaps[number];
	*ret = (struct memory_range){ subheap->end, subheap->limit };
	return true;
}
