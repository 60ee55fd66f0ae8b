#include "allocators/glibc/structure.h"

/* Counts and sizes of mp_ that stand before sbrk_base; see read_counts() in arenas.c. */
enum { COUNTS_BYTES = 48 };

/* Words of an arena that malloc never used; see is_unused(). */
enum { UNUSED_WORDS = 4 };

struct error *glibc_visit_structure(const struct heap *base, program_range_visitor *visit,
				    void *data)
{
	const struct glibc_heap *heap = (const struct glibc_heap *)base;

	list_for_each(arena, heap->arenas, heap->arena_count) {
		if (arena->address)
			TRY(visit(data, arena->address, arena->layout->size));
	}
	list_for_each(subheap, heap->subheaps, heap->subheap_count)
		TRY(visit(data, subheap->start, subheap->first - subheap->start));
	list_for_each(parameters, heap->parameters, heap->parameters_count) {
		if (parameters->place)
			TRY(visit(data, parameters->place - COUNTS_BYTES,
				  COUNTS_BYTES + (uint64_t)heap->word));
	}
	if (heap->arena_count == 0 && heap->home)
		TRY(visit(data, heap->home, (uint64_t)UNUSED_WORDS * heap->word));
	return NULL;
}

/* A link of a cache or fast bin that is mangled: its target is memory that malloc may have. */
static bool is_mangled_link(const struct glibc_heap *heap, uint64_t where, uint64_t word)
{
	uint64_t target = glibc_demangle(heap, where, word);
	const struct region *region = target ? image_find(heap->context.image, target) : NULL;

	return heap->mangled &&
	       (target == 0 || (region && region->bytes && (region->rights & RIGHT_WRITE)));
}

bool glibc_wrote(const struct heap *base, struct block block, uint64_t offset, uint64_t word)
{
	const struct glibc_heap *heap = (const struct glibc_heap *)base;

	if (offset == 0)
		return is_mangled_link(heap, block.start, word);
	if (offset == heap->word && block.state == BLOCK_CACHED)
		return heap->tcache_key && word == heap->tcache_key;
	/* The size once more, at the end of a chunk that is in a bin. */
	return offset == block.size - heap->word && word == block.size + heap->overhead;
}
