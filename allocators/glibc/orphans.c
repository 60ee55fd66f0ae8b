#include "allocators/glibc/arenas.h"
#include "allocators/glibc/lists.h"

#include "analyzer/base/list.h"

#include <inttypes.h>

enum { SUBHEAP_BORDER = 1 << 20, HEAD_SIZES = 2 };

/* The arena at the head of the heap at start, if there is one. */
static bool find_head(struct view *view, uint64_t start, struct glibc_arena *ret)
{
	static const uint64_t sizes[][HEAD_SIZES] = { { 32, 48 }, { 24, 16 } };
	const uint64_t *head_sizes = sizes[image_word_size(view->image) == 4];
	uint64_t owner;

	if (!view_word(view, start, &owner))
		return false;
	for (size_t i = 0; i < HEAD_SIZES; i++)
		if (owner == start + head_sizes[i])
			return glibc_read_arena(view, owner, ret);
	return false;
}

static struct error *add_head(struct glibc_heap *heap, struct glibc_arena arena)
{
	if (heap->home)
		findings_add(
			heap->context.findings, FINDING_INCOMPLETE,
			"the arena at %#" PRIx64
			" is not in the ring of arenas, which may be damaged; it is treated as one",
			arena.address);
	return glibc_add_arena(heap, arena);
}

static struct error *add_heads(struct glibc_heap *heap, const struct region *region)
{
	enum { AHEAD = 64 * SUBHEAP_BORDER };
	struct view view = { heap->context.image };
	uint64_t start = (region->start + SUBHEAP_BORDER - 1) & ~(uint64_t)(SUBHEAP_BORDER - 1);

	for (; start >= region->start && start < region->end; start += SUBHEAP_BORDER) {
		struct glibc_arena arena;
		uint64_t data = image_next_data(view.image, start);

		/* Holes have no heads; go on right before data. */
		if (data - start >= SUBHEAP_BORDER) {
			start = (data - 1) & ~(uint64_t)(SUBHEAP_BORDER - 1);
			continue;
		}
		image_fetch(view.image, start + AHEAD, start + AHEAD + sizeof(uint64_t));
		if (find_head(&view, start, &arena) && !glibc_knows_arena(heap, arena.address))
			TRY(add_head(heap, arena));
	}
	return NULL;
}

/*
 * The start of sbrk() memory in the region: its start or, if the kernel merged it with the
 * variables of a program, right behind those.
 */
static uint64_t heap_start(const struct glibc_heap *heap, const struct region *region)
{
	const struct module *module = program_find_module(heap->context.program, region->start);
	uint64_t end = module ? page_above(module->end) : region->start;

	return end < region->end ? end : region->start;
}

/* True if the first chunk from start on has the size of a thread's cache. */
static bool starts_with_tcache(const struct glibc_heap *heap, struct view *view, uint64_t start)
{
	unsigned int word = heap->word;
	uint64_t chunk = glibc_chunk_above(heap, start), before, size;

	/* Reading in a hole would make the kernel fill some of it. */
	if (image_next_data(view->image, start) != start)
		return false;
	return view_word(view, chunk, &before) && before == 0 &&
	       view_word(view, chunk + word, &size) && (size & FLAGS) == PREV_INUSE &&
	       glibc_has_cache_size(header_size(size), word);
}

static struct error *add_main_heap(struct glibc_heap *heap, uint64_t start, uint64_t end)
{
	TRY(LIST_APPEND(heap->parameters, heap->parameters_count,
			(struct glibc_parameters){
				.base = glibc_chunk_above(heap, start),
				.arena = heap->arena_count,
			}));
	return glibc_add_arena(heap, (struct glibc_arena){
					     .layout = glibc_any_layout(heap->word),
					     .main = true,
					     .stated_size = end - start,
				     });
}

static bool may_be_heap(const struct region *region)
{
	return region->bytes && (region->rights & RIGHT_WRITE) && !region->mapping &&
	       region->start % PAGE == 0;
}

/* Add the arenas that head their own heaps and are in no ring. */
static struct error *find_unlisted(struct glibc_heap *heap)
{
	const struct image *image = heap->context.image;

	list_for_each(region, image->regions, image->region_count) {
		if (may_be_heap(region))
			TRY(add_heads(heap, region));
	}
	return NULL;
}

static struct error *find_main_heap(struct glibc_heap *heap)
{
	const struct image *image = heap->context.image;
	struct view view = { image };

	list_for_each(region, image->regions, image->region_count) {
		uint64_t start = heap_start(heap, region);

		if (may_be_heap(region) && heap->parameters_count == 0 &&
		    starts_with_tcache(heap, &view, start))
			TRY(add_main_heap(heap, start, region->end));
	}
	if (heap->arena_count > 0)
		findings_add(
			heap->context.findings, FINDING_INCOMPLETE,
			"malloc's main arena was not found in the core: its heaps are found by their shape, and what is free in fast bins may count as used");
	return NULL;
}

struct error *glibc_find_orphans(struct glibc_heap *heap)
{
	bool is_orphan = heap->parameters_count == 0;

	if (is_orphan && heap->home)
		return NULL;
	TRY(find_unlisted(heap));
	return !is_orphan ? NULL : find_main_heap(heap);
}
