/*
 * mimalloc 2.0.
 *
 * Nothing is needed but the dump's memory: no symbols, no debug information. See
 * mimalloc/mimalloc.h for the layouts, mimalloc/search.c for how the heap is found.
 */
#include "allocators/mimalloc/mimalloc.h"

#include <inttypes.h>

static void mimalloc_close(struct heap *base)
{
	struct mimalloc_heap *heap = (struct mimalloc_heap *)base;

	array_release(&heap->segments);
	array_release(&heap->pages);
	array_release(&heap->delayed);
	array_release(&heap->owned);
	free(heap);
}

static void cleanup_mimalloc_close(struct mimalloc_heap **heap)
{
	if (*heap)
		mimalloc_close(&(*heap)->heap);
}

static struct error *mimalloc_open(const struct heap_context *context, struct heap **ret)
{
	_cleanup_(mimalloc_close) struct mimalloc_heap *heap = calloc(1, sizeof(*heap));

	if (!heap)
		return &error_no_memory;
	heap->context = *context;
	heap->segments.memory.account = context->account;
	heap->pages.memory.account = context->account;
	heap->delayed.memory.account = context->account;
	heap->owned.memory.account = context->account;
	TRY(mimalloc_search(heap));
	*ret = NULL;
	if (heap->segments.count == 0)
		return NULL;
	TRY(mimalloc_read_pages(heap));
	if (!mimalloc_fits(heap))
		return NULL;
	array_for_each(segment, &heap->segments)
		TRY(array_append(&heap->owned,
				 (struct memory_range){ segment->start, segment->end }));
	heap->owned.count = memory_ranges_join(heap->owned.items, heap->owned.count);
	*ret = &take(heap)->heap;
	return NULL;
}

static struct error *mimalloc_walk(struct heap *base, arena_number first, struct block_sink *sink)
{
	struct mimalloc_heap *heap = (struct mimalloc_heap *)base;
	struct findings *findings = heap->context.findings;

	array_for_each(segment, &heap->segments)
		TRY(block_sink_claim(sink, segment->start, segment->head_end));
	TRY(mimalloc_add_blocks(heap, first, sink));
	heap_damage_report(&heap->absent, findings, "mimalloc",
			   "pages whose free blocks the core lacks",
			   "which of their blocks are free is unknown");
	heap_damage_report(&heap->lists, findings, "mimalloc",
			   "lists of free blocks that lead elsewhere",
			   "what may follow in them counts as used");
	heap_damage_report(&heap->counts, findings, "mimalloc",
			   "pages whose lists of free blocks contradict their count of used ones",
			   "their blocks count as the lists say");
	return NULL;
}

static const struct arena_kind mimalloc_arena_kinds[] = {
	{ .name = "heap", .group = "The heap of mimalloc" },
	{ NULL },
};

enum { FREE_LIST, FREE_BY_OTHERS, FREE_SPAN };

static const struct free_kind mimalloc_free_kinds[] = {
	[FREE_LIST] = { "page list" },	  /* a block on a list of its page */
	[FREE_BY_OTHERS] = { "delayed" }, /* its thread has not heard of it yet */
	[FREE_SPAN] = { "free slices" },
	{ NULL },
};

static size_t mimalloc_arena_count(const struct heap *base)
{
	return 1;
}

static struct arena mimalloc_arena(const struct heap *base, size_t number)
{
	const struct mimalloc_heap *heap = (const struct mimalloc_heap *)base;

	return (struct arena){ .kind = mimalloc_arena_kinds,
			       .address = heap->segments.items[0].start,
			       .size = heap->bytes };
}

static unsigned int mimalloc_free_kind(const struct heap *base, size_t number, allocation_id id,
				       struct block block)
{
	const struct mimalloc_heap *heap = (const struct mimalloc_heap *)base;
	const struct mimalloc_page *page = mimalloc_find_page(heap, block.start);

	if (page && !page->bytes)
		return FREE_SPAN;
	return mimalloc_is_delayed(heap, block.start) ? FREE_BY_OTHERS : FREE_LIST;
}

static const struct memory_range *mimalloc_owned(const struct heap *base, size_t *ret_count)
{
	const struct mimalloc_heap *heap = (const struct mimalloc_heap *)base;

	*ret_count = heap->owned.count;
	return heap->owned.items;
}

/* The main thread's heap is a variable of the module. */
static bool mimalloc_lives_in(const struct heap *base, uint64_t start, uint64_t end)
{
	const struct mimalloc_heap *heap = (const struct mimalloc_heap *)base;

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

static bool tell_page(const struct mimalloc_page *page, uint64_t address, char *ret, size_t size)
{
	if (address - page->metadata < SLICE_STRIDE)
		snprintf(ret, size, "the metadata of the page at %#" PRIx64, page->start);
	else if (address < page->start || address >= page->end)
		return false;
	else if (!page->bytes)
		snprintf(ret, size, "in free slices of a segment");
	else
		snprintf(ret, size, "in the page at %#" PRIx64 " of blocks of %" PRIu64 " bytes",
			 page->start, page->bytes);
	return true;
}

static bool mimalloc_tell(const struct heap *base, uint64_t address, char *ret, size_t size)
{
	const struct mimalloc_heap *heap = (const struct mimalloc_heap *)base;

	array_for_each(page, &heap->pages)
		if (tell_page(page, address, ret, size))
			return true;
	array_for_each(segment, &heap->segments)
		if (address >= segment->start && address < segment->head_end) {
			snprintf(ret, size, "in the head of the segment at %#" PRIx64,
				 segment->start);
			return true;
		}
	return false;
}

const struct allocator allocator_mimalloc = {
	.name = "mimalloc",
	.summary = "mimalloc 2.0",
	.alignment = ALIGNMENT,
	.open = mimalloc_open,
	.walk = mimalloc_walk,
	.close = mimalloc_close,
	.arena_count = mimalloc_arena_count,
	.arena = mimalloc_arena,
	.arena_kinds = mimalloc_arena_kinds,
	.free_kinds = mimalloc_free_kinds,
	.free_kind = mimalloc_free_kind,
	.size_fits = mimalloc_size_fits,
	.lives_in = mimalloc_lives_in,
	.owned = mimalloc_owned,
	.tell = mimalloc_tell,
};
