/*
 * PartitionAlloc of Chromium, found by the dump's memory alone: see
 * partition_alloc/partition_alloc.h for the layout, partition_alloc/search.c for how it is found.
 */
#include "allocators/partition_alloc/partition_alloc.h"

#include <inttypes.h>

enum { FREE_SLOT, FREE_CACHED, FREE_QUARANTINE, FREE_REST, FREE_SPAN };

static const struct free_kind partition_alloc_free_kinds[] = {
	[FREE_SLOT] = { "slot span" }, /* a slot on the list of its span */
	[FREE_CACHED] = { "thread cache" },
	[FREE_QUARANTINE] = { "quarantine" }, /* freed, while pointers that are counted lead there
					       */
	[FREE_REST] = { "span rest" },	      /* of a span, never handed out */
	[FREE_SPAN] = { "empty spans" },
	{ NULL },
};

static struct pa_heap *of(const struct heap *heap)
{
	return (struct pa_heap *)heap;
}

static struct error *partition_alloc_open(struct heap *base, const struct heap_context *context,
					  bool *ret)
{
	struct pa_heap *heap = of(base);

	heap->context = *context;
	arrays_use(context->account, &heap->roots, &heap->spans, &heap->cached, &heap->caches,
		   &heap->metadata, &base->owned);
	TRY(pa_search(heap));
	if (heap->spans.count == 0)
		return NULL;
	TRY(pa_find_caches(heap));
	array_for_each(span, &heap->spans)
		TRY(array_append(&base->owned,
				 (struct memory_range){ span->start, pa_span_end(span) }));
	array_for_each(page, &heap->metadata)
		TRY(array_append(&base->owned,
				 (struct memory_range){ *page, *page + PA_SYSTEM_PAGE }));
	*ret = true;
	return NULL;
}

static void partition_alloc_close(struct heap *base)
{
	struct pa_heap *heap = of(base);

	arrays_release(&heap->roots, &heap->spans, &heap->cached, &heap->caches, &heap->metadata,
		       &base->owned);
}

static void report(const struct pa_heap *heap)
{
	static const char NAME[] = "PartitionAlloc";
	struct findings *findings = heap->context.findings;

	heap_damage_report(&heap->misfits, findings, NAME,
			   "metadata pages whose super page is unknown",
			   "what is there is not counted");
	heap_damage_report(&heap->overlaps, findings, NAME, "slot spans that overlap others",
			   "they are not counted");
	heap_damage_report(&heap->counts, findings, NAME,
			   "slot spans whose list of free slots contradicts their counts",
			   "their slots count as the list says");
	heap_list_damage_report(&heap->lists, findings, NAME, "slots");
	if (heap->absent.count)
		findings_add(findings, FINDING_NOTE,
			     "PartitionAlloc: how many slots of %" PRIu64
			     " slot spans are free is known, but not which: their memory is not in "
			     "the core",
			     heap->absent.count);
	heap_damage_report(&heap->lengths, findings, NAME,
			   "lists of free slots with a wrong head, or that end too soon",
			   "what may follow in them counts as used");
}

static const struct arena_kind partition_alloc_arena_kinds[] = {
	{ .name = "partition", .group = "Partitions of PartitionAlloc" },
	{ NULL },
};

static struct error *partition_alloc_walk(struct heap *base, struct block_sink *sink)
{
	struct pa_heap *heap = of(base);

	array_for_each(page, &heap->metadata)
		TRY(block_sink_claim(sink, *page, *page + PA_SYSTEM_PAGE));
	TRY(pa_add_blocks(heap, base->first_arena, sink));
	report(heap);
	array_for_each(root, &heap->roots)
		TRY(array_append(&base->arenas, (struct arena){ partition_alloc_arena_kinds,
								root->address, root->bytes }));
	return NULL;
}

static unsigned int partition_alloc_free_kind(const struct heap *base, size_t number,
					      allocation_id id, struct block block)
{
	const struct pa_heap *heap = of(base);
	const struct pa_span *span = pa_find_span(heap, block.start);
	struct view view = { heap->context.image };
	uint64_t link;
	bool absent;

	if (block.state == BLOCK_CACHED)
		return FREE_CACHED;
	if (!span)
		return FREE_SLOT;
	if (span->allocated == 0)
		return FREE_SPAN;
	if (block.start - span->start >= span->slots * span->slot_size)
		return FREE_REST;
	return !pa_read_link(&view, block.start, &link, &absent) && !absent ? FREE_QUARANTINE
									    : FREE_SLOT;
}

/* The whole slot. */
static struct memory_range partition_alloc_extent(const struct heap *base, size_t number,
						  struct block block, const struct free_kind *kind)
{
	const struct pa_span *span = pa_find_span(of(base), block.start);
	uint64_t size = span && block.size < span->slot_size ? span->slot_size : block.size;

	return (struct memory_range){ block.start, block.start + size };
}

/* Sizes of slots are an eighth of a power of two apart, or a fourth. */
static bool partition_alloc_size_fits(uint64_t size, uint64_t wanted, bool exactly)
{
	return size - wanted < (wanted < 64 ? 16 : wanted / 4 + 16);
}

/* The caches of threads are slots. */
static bool partition_alloc_keeps(const struct heap *heap, struct block block)
{
	const uint64_t *caches = of(heap)->caches.items;
	size_t count = of(heap)->caches.count;
	size_t i = BISECT(j, 0, count, caches[j] < block.start);

	return i < count && caches[i] == block.start;
}

static bool partition_alloc_tell(const struct heap *base, uint64_t address, char *ret, size_t size)
{
	const struct pa_heap *heap = of(base);
	const struct pa_span *span = pa_find_span(heap, address);
	const struct pa_cached *cached = pa_find_cached(heap, address);

	array_for_each(page, &heap->metadata)
		if (address - *page < PA_SYSTEM_PAGE) {
			snprintf(ret, size, "in a metadata page of PartitionAlloc");
			return true;
		}
	if (!span)
		return false;
	if (span->allocated == 0)
		snprintf(ret, size, "an empty slot span of slots of %" PRIu64 " bytes",
			 span->slot_size);
	else if (cached)
		snprintf(ret, size,
			 "in the cache of thread %" PRIu32 ", a slot of %" PRIu64 " bytes",
			 cached->thread, span->slot_size);
	else
		snprintf(ret, size,
			 "in the slot span at %#" PRIx64 ", of slots of %" PRIu64 " bytes",
			 span->start, span->slot_size);
	return true;
}

const struct allocator allocator_partition_alloc = {
	.name = "partition_alloc",
	.summary = "PartitionAlloc of Chromium",
	.alignment = 16,
	.lives_in = heap_has_arena_in,
	.heap_size = sizeof(struct pa_heap),
	FILL_SLOTS(partition_alloc, open, walk, close, arena_kinds, free_kinds, free_kind, extent,
		   size_fits, keeps, tell),
};
