#include "allocators/glibc/spare.h"

enum { LINKS = 48 /* sizeof(struct malloc_chunk) */ };

struct search {
	const struct glibc_heap *heap;
	const struct allocation_index *index;
	void (*visit)(void *data, const struct spare *spare);
	void *data;
	const struct heap_region *region;
	const struct glibc_arena *arena;
};

static void tell_spare(const struct search *search, uint64_t start, uint64_t end,
		       enum spare_kind kind)
{
	const struct spare spare = { start, end, kind, search->region->arena };

	if (start < end)
		search->visit(search->data, &spare);
}

/* Whether the memory that sbrk() gave ends there: only then it is taken back.
 */
static bool is_break(const struct search *search, uint64_t top, uint64_t end)
{
	const struct image *image = search->heap->context.image;
	uint64_t address = search->arena->base ? search->arena->base : top;
	const struct region *region;

	while (address <= end && (region = image_find(image, address)) &&
	       (region->rights & RIGHT_WRITE) && !region->mapping)
		address = region->end;
	return address == end;
}

/* The chunk at the end of an arena, merged with what is free below it. */
static void visit_top(const struct search *search, uint64_t chunk, uint64_t end)
{
	uint64_t size = end - chunk;

	if (search->arena->main && is_break(search, chunk, end)) {
		if (size > MINIMUM_CHUNK + 1)
			tell_spare(search, end - page_below(size - MINIMUM_CHUNK - 1), end,
				   SPARE_END);
	} else {
		tell_spare(search, page_above(chunk + HEADER), page_below(end), SPARE_KEPT);
	}
}

/* Go over the region's free chunks, merging those that touch. */
static void visit_region(const struct search *search)
{
	const struct bitmap *used = allocation_used(search->index);
	const struct bitmap *cached = allocation_cached(search->index);
	size_t last = search->region->first + (size_t)search->region->count;
	uint64_t chunk = 0, end = 0;
	size_t hint = 0;

	for (size_t id = search->region->first; id < last; id++) {
		struct memory_range range;

		if (bitmap_get(used, id) || bitmap_get(cached, id))
			continue;
		range = allocation_range_near(search->index, (allocation_id)id, &hint);
		if (range.start - HEADER != end) {
			tell_spare(search, page_above(chunk + LINKS), page_below(end),
				   SPARE_INSIDE);
			chunk = range.start - HEADER;
		}
		if (range.start - HEADER == search->arena->top) {
			visit_top(search, chunk, range.end);
			return;
		}
		/* The last word of what is free belongs to the next chunk. */
		end = range.end - 8;
	}
	tell_spare(search, page_above(chunk + LINKS), page_below(end), SPARE_INSIDE);
}

void glibc_find_spare(const struct glibc_heap *heap, const struct allocation_index *index,
		      void (*visit)(void *data, const struct spare *spare), void *data)
{
	for (size_t i = 0; i < heap_region_count(index); i++) {
		struct search search = { heap, index, visit, data };
		arena_number arena;

		search.region = heap_region(index, i);
		arena = search.region->arena - heap->first_arena;
		/* The last one has no free chunks. */
		if (search.region->arena < heap->first_arena || arena >= heap->arena_count)
			continue;
		search.arena = &heap->arenas[arena];
		visit_region(&search);
	}
}
