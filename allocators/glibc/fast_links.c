#include "allocators/glibc/lists.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"

enum { PROGRESS_STEP = 1 << 14 };

/* Addresses are multiples of 16; the lower bits are used for more. */
struct fast_link {
	uint64_t chunk; /* and the number of its bin */
	uint64_t next;	/* a chunk, or 0; and 1 if a list led here */
};

/* True if a chunk can be at address. Does not read the memory there, which may be far away. */
static bool may_be_chunk(const struct glibc_heap *heap, struct view *view, uint64_t address)
{
	const struct region *region;

	if (address == 0 || address - view->start < view->size)
		return true;
	region = image_find(heap->context.image, address);
	return region && region->bytes && (region->rights & RIGHT_WRITE);
}

struct error *glibc_note_fast(struct glibc_heap *heap, struct view *view, uint64_t chunk,
			      uint64_t size)
{
	uint64_t next;

	if (size > glibc_largest_fast(heap) || !view_word(view, chunk + heap->header, &next))
		return NULL;
	next = glibc_demangle(heap, chunk + heap->header, next);
	if (next % 16 != 0 || !may_be_chunk(heap, view, next))
		return NULL;
	return array_append(&heap->fast_links,
			    (struct fast_link){ chunk | (size - heap->minimum) / 16, next });
}

DEFINE_COMPARE(compare_links, struct fast_link, ASCENDING(chunk))

/* The walk rises in each piece of a heap, and most heaps are one piece. */
static void sort(struct glibc_heap *heap)
{
	const struct fast_link *links = heap->fast_links.items;

	for (size_t i = 1; i < heap->fast_links.count; i++)
		if (links[i].chunk <= links[i - 1].chunk) {
			array_sort(&heap->fast_links, compare_links);
			return;
		}
}

/* The noted chunk, if it is of that bin and not on a list yet. */
static struct fast_link *find_link(const struct glibc_heap *heap, uint64_t chunk, unsigned int bin)
{
	struct fast_link *links = heap->fast_links.items;
	size_t above = LIST_ABOVE(links, heap->fast_links.count, chunk, chunk | bin);

	return chunk % 16 == 0 && above > 0 && links[above - 1].chunk == (chunk | bin) &&
			       links[above - 1].next % 16 == 0
		       ? &links[above - 1]
		       : NULL;
}

static struct error *follow(struct glibc_heap *heap, struct block_sink *sink,
			    const struct glibc_arena *arena, unsigned int bin)
{
	struct view view = { heap->context.image };
	uint64_t chunk, last = arena->address;

	if (!view_word(&view, glibc_fastbin(heap, arena, bin), &chunk))
		return NULL;
	for (size_t i = 1; chunk != 0; i++) {
		struct fast_link *link = find_link(heap, chunk, bin);

		if (!link) {
			heap->fast_damaged = true;
			return glibc_note_broken(
				heap,
				(struct glibc_broken_list){ "fast bin", glibc_fast_size(heap, bin),
							    arena->address, last, FAULT_LINK,
							    chunk + heap->header },
				chunk);
		}
		TRY(array_append(&heap->fast, chunk));
		block_sink_restate(sink, chunk + heap->header, BLOCK_FREE);
		last = chunk + heap->header;
		chunk = link->next;
		link->next |= 1;
		if (i % PROGRESS_STEP == 0)
			TRY(progress_check(heap->context.progress, 0));
	}
	return NULL;
}

struct error *glibc_follow_fast(struct glibc_heap *heap, struct block_sink *sink)
{
	if (!heap->fast_put_off)
		return NULL;
	sort(heap);
	list_for_each(arena, heap->arenas, heap->arena_count)
		for (unsigned int j = 0; j < glibc_fastbins(heap); j++)
			if (arena->put_off >> j & 1)
				TRY(follow(heap, sink, arena, j));
	array_release(&heap->fast_links);
	return NULL;
}
