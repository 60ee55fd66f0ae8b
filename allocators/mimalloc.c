/*
 * mimalloc 1.7 to 3.6.
 *
 * Nothing is needed but the dump's memory: no symbols, no debug information. See
 * mimalloc/mimalloc.h for the layouts, mimalloc/segments.c and map.c for how the heap is found.
 */
#include "allocators/mimalloc/mimalloc.h"

#include <inttypes.h>

static void mimalloc_close(struct heap *base)
{
	struct mimalloc_heap *heap = (struct mimalloc_heap *)base;

	arrays_release(&heap->segments, &heap->pages, &heap->delayed, &heap->places, &heap->maps);
}

static void set_account(struct mimalloc_heap *heap, struct memory_account *account)
{
	arrays_use(account, &heap->segments, &heap->pages, &heap->delayed, &heap->places,
		   &heap->maps);
}

/* Find segments and pages by the layout. */
static struct error *find_pages(struct mimalloc_heap *heap, const struct mimalloc_layout *layout)
{
	heap->layout = layout;
	heap->segments.count = 0;
	heap->pages.count = 0;
	heap->bytes = 0;
	return layout->form == FORM_MAP ? mimalloc_find_map(heap) : mimalloc_find_segments(heap);
}

/*
 * Choose the layout with which most pages agree with what they say of themselves: more than three
 * quarters must, but for those that do up to one wrong link. *ret is NULL if there is none.
 */
static struct error *choose_layout(struct mimalloc_heap *heap, const struct mimalloc_layout **ret)
{
	size_t most = 0;

	*ret = NULL;
	for (size_t i = 0; i < mimalloc_layout_count(); i++) {
		struct mimalloc_votes votes;
		size_t fits;

		TRY(find_pages(heap, mimalloc_layout(i)));
		TRY(mimalloc_vote(heap, &votes));
		fits = 2 * votes.fits + votes.damaged;
		if (fits <= most || votes.fits * 4 < (votes.pages - votes.damaged) * 3)
			continue;
		most = fits;
		*ret = mimalloc_layout(i);
	}
	return NULL;
}

/* List the memory that is mimalloc's: segments, arenas, and pages outside of these. */
static struct error *list_owned(struct mimalloc_heap *heap)
{
	array_for_each(segment, &heap->segments)
		TRY(array_append(&heap->heap.owned,
				 (struct memory_range){ segment->start, segment->end }));
	array_for_each(page, &heap->pages)
		TRY(array_append(&heap->heap.owned,
				 (struct memory_range){ page->start, page->end }));
	heap->heap.owned.count = memory_ranges_join(heap->heap.owned.items, heap->heap.owned.count);
	return NULL;
}

static struct error *mimalloc_open(struct heap *base, const struct heap_context *context, bool *ret)
{
	struct mimalloc_heap *heap = (struct mimalloc_heap *)base;
	const struct mimalloc_layout *layout;

	heap->context = *context;
	set_account(heap, context->account);
	TRY(mimalloc_find_places(heap));
	TRY(mimalloc_find_maps(heap));
	TRY(choose_layout(heap, &layout));
	if (!layout)
		return NULL;
	TRY(find_pages(heap, layout));
	TRY(mimalloc_find_arenas(heap));
	TRY(mimalloc_read_heaps(heap));
	TRY(list_owned(heap));
	*ret = true;
	return NULL;
}

/* Bookkeeping: heads of segments and arenas, and what pages begin with. */
static struct error *claim(const struct mimalloc_heap *heap, struct block_sink *sink)
{
	array_for_each(segment, &heap->segments)
		TRY(block_sink_claim(sink, segment->start, segment->head_end));
	array_for_each(page, &heap->pages)
		if (page->metadata < page->start && page->start - page->metadata <= PAGE_METADATA)
			TRY(block_sink_claim(sink, page->metadata, page->start));
	return NULL;
}

static const struct arena_kind mimalloc_arena_kinds[] = {
	{ .name = "heap", .group = "The heap of mimalloc" },
	{ NULL },
};

static struct error *mimalloc_walk(struct heap *base, struct block_sink *sink)
{
	struct mimalloc_heap *heap = (struct mimalloc_heap *)base;
	struct findings *findings = heap->context.findings;

	TRY(claim(heap, sink));
	TRY(mimalloc_add_blocks(heap, base->first_arena, sink));
	heap_damage_report(&heap->absent, findings, "mimalloc",
			   "pages whose free blocks the core lacks",
			   "which of their blocks are free is unknown");
	heap_list_damage_report(&heap->lists, findings, "mimalloc", "blocks");
	heap_damage_report(&heap->heads, findings, "mimalloc",
			   "lists of free blocks with a wrong head",
			   "what may follow in them counts as used");
	heap_damage_report(&heap->counts, findings, "mimalloc",
			   "pages whose lists of free blocks contradict their count of used ones",
			   "their blocks count as the lists say");
	if (heap->checked_blocks > heap->overruns.count)
		heap_damage_report(&heap->overruns, findings, "mimalloc",
				   "blocks in use whose end was overwritten",
				   "they count with all of their bytes");
	return array_append(
		&base->arenas,
		(struct arena){ mimalloc_arena_kinds, base->owned.items[0].start, heap->bytes });
}

enum { FREE_LIST, FREE_BY_OTHERS, FREE_REST, FREE_SPAN };

static const struct free_kind mimalloc_free_kinds[] = {
	[FREE_LIST] = { "page list" },	  /* a block on a list of its page */
	[FREE_BY_OTHERS] = { "delayed" }, /* its thread has not heard of it yet */
	[FREE_REST] = { "page rest" },	  /* of its page, in which no blocks are yet */
	[FREE_SPAN] = { "free slices" },  { NULL },
};

static unsigned int mimalloc_free_kind(const struct heap *base, size_t number, allocation_id id,
				       struct block block)
{
	const struct mimalloc_heap *heap = (const struct mimalloc_heap *)base;
	const struct mimalloc_page *page = mimalloc_find_page(heap, block.start);

	if (page && !page->bytes)
		return FREE_SPAN;
	if (page && block.start >= page->first + page->capacity * page->bytes)
		return FREE_REST;
	return number_list_has(&heap->delayed, block.start) ? FREE_BY_OTHERS : FREE_LIST;
}

/* The whole block, of which a build that checks for overruns gives the program less. */
static struct memory_range mimalloc_extent(const struct heap *base, size_t number,
					   struct block block, const struct free_kind *kind)
{
	const struct mimalloc_page *page =
		mimalloc_find_page((const struct mimalloc_heap *)base, block.start);
	uint64_t size = page && !kind ? page->bytes : block.size;

	return (struct memory_range){ block.start, block.start + size };
}

/* The main thread's heap is a variable of the module, or what leads to the page map. */
static bool mimalloc_lives_in(const struct heap *base, uint64_t start, uint64_t end)
{
	const struct mimalloc_heap *heap = (const struct mimalloc_heap *)base;

	if (heap->layout->form == FORM_MAP)
		return heap->variable >= start && heap->variable < end;
	array_for_each(page, &heap->pages)
		if (page->bytes && page->heap >= start && page->heap < end)
			return true;
	return false;
}

/* Each doubling is cut into four; of large ones, whole slices. */
static bool mimalloc_size_fits(uint64_t size, uint64_t wanted, bool exactly)
{
	uint64_t spacing = wanted / 4 < 16 ? 16 : wanted / 4;

	return size - wanted < (wanted < SLICE_BYTES ? spacing : spacing + SLICE_BYTES);
}

static bool tell_page(const struct mimalloc_page *page, uint64_t metadata_bytes, uint64_t address,
		      char *ret, size_t size)
{
	if (page->metadata && address - page->metadata < metadata_bytes)
		snprintf(ret, size, "the metadata of the page at %#" PRIx64, page->start);
	else if (address < page->start || address >= page->end)
		return false;
	else if (!page->bytes)
		snprintf(ret, size, "in free slices");
	else
		snprintf(ret, size, "in the page at %#" PRIx64 " of blocks of %" PRIu64 " bytes",
			 page->start, page->bytes);
	return true;
}

static bool mimalloc_tell(const struct heap *base, uint64_t address, char *ret, size_t size)
{
	const struct mimalloc_heap *heap = (const struct mimalloc_heap *)base;
	uint64_t metadata_bytes = heap->layout->stride ? heap->layout->stride : PAGE_METADATA;

	array_for_each(page, &heap->pages)
		if (tell_page(page, metadata_bytes, address, ret, size))
			return true;
	array_for_each(segment, &heap->segments)
		if (address >= segment->start && address < segment->head_end) {
			snprintf(ret, size, "in the head of the %s at %#" PRIx64,
				 heap->layout->form == FORM_MAP ? "arena" : "segment",
				 segment->start);
			return true;
		}
	return false;
}

const struct allocator allocator_mimalloc = {
	.name = "mimalloc",
	.summary = "mimalloc 1.7 to 3.6",
	.alignment = ALIGNMENT,
	.heap_size = sizeof(struct mimalloc_heap),
	FILL_SLOTS(mimalloc, open, walk, close, arena_kinds, free_kinds, free_kind, extent,
		   size_fits, lives_in, tell),
};
