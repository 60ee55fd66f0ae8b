/*
 * gperftools' tcmalloc 2.8 to 2.18.
 *
 * Nothing is needed but the dump's memory: no symbols, no debug information. See
 * tcmalloc/tcmalloc.h for the layouts, tcmalloc/search.c for how the heap is found.
 */
#include "allocators/tcmalloc/tcmalloc.h"

#include <inttypes.h>

void tcmalloc_deinit(struct tcmalloc *tc)
{
	arrays_release(&tc->spans, &tc->leaves, &tc->caches, &tc->cached, &tc->metadata,
		       &tc->pools);
}

static void tcmalloc_close(struct heap *base)
{
	struct tcmalloc_heap *heap = (struct tcmalloc_heap *)base;

	array_for_each(tc, &heap->list)
		tcmalloc_deinit(tc);
	array_release(&heap->list);
}

static struct error *add_owned(struct tcmalloc_heap *heap, const struct tcmalloc *tc)
{
	array_for_each(range, &tc->metadata)
		TRY(array_append(&heap->heap.owned, *range));
	array_for_each(span, &tc->spans)
		TRY(array_append(&heap->heap.owned,
				 (struct memory_range){ span->start, span_end(span) }));
	return NULL;
}

static struct error *tcmalloc_open(struct heap *base, const struct heap_context *context, bool *ret)
{
	struct tcmalloc_heap *heap = (struct tcmalloc_heap *)base;

	heap->context = *context;
	heap->list.memory.account = context->account;
	TRY(tcmalloc_search(heap));
	array_for_each(tc, &heap->list)
		TRY(add_owned(heap, tc));
	*ret = heap->list.count > 0;
	return NULL;
}

static void report(const struct tcmalloc *tc, struct findings *findings)
{
	heap_damage_report(&tc->overlaps, findings, "tcmalloc", "spans that overlap others",
			   "they are not counted");
	heap_damage_report(&tc->misfits, findings, "tcmalloc",
			   "spans whose size or class cannot be", "they are not counted");
	heap_damage_report(&tc->absent, findings, "tcmalloc",
			   "spans whose free objects the core lacks",
			   "which of their objects are free is unknown");
	heap_damage_report(&tc->counts, findings, "tcmalloc",
			   "spans whose list of free objects contradicts their count of used ones",
			   "their objects count as the list says");
	heap_list_damage_report(&tc->lists, findings, "tcmalloc", "objects");
	heap_damage_report(&tc->lengths, findings, "tcmalloc",
			   "lists of free objects with a wrong head, or that end too soon or late",
			   "what may follow in them counts as used");
	if (tc->caches.count == 0)
		findings_add(
			findings, FINDING_INCOMPLETE,
			"tcmalloc: no cache of a thread was found: what is in them counts as used");
	if (!tc->central.start)
		findings_add(
			findings, FINDING_INCOMPLETE,
			"tcmalloc: the central caches were not found: what is in them counts as used");
}

static const struct arena_kind tcmalloc_arena_kinds[] = {
	{ .name = "heap", .group = "Heaps of tcmalloc" },
	{ NULL },
};

static struct error *tcmalloc_walk(struct heap *base, struct block_sink *sink)
{
	struct tcmalloc_heap *heap = (struct tcmalloc_heap *)base;

	array_for_each(tc, &heap->list) {
		arena_number arena = base->first_arena + (arena_number)base->arenas.count;

		array_for_each(range, &tc->metadata)
			TRY(block_sink_claim(sink, range->start, range->end));
		if (tc->central.start)
			TRY(block_sink_claim(sink, tc->central.start, tc->central.end));
		TRY(tcmalloc_add_blocks(tc, &heap->context, arena, sink));
		report(tc, heap->context.findings);
		TRY(array_append(&base->arenas,
				 (struct arena){ tcmalloc_arena_kinds, tc->root, tc->bytes }));
	}
	return NULL;
}

enum { FREE_CACHED, FREE_TRANSFER, FREE_OBJECT, FREE_NORMAL, FREE_RETURNED };

static const struct free_kind tcmalloc_free_kinds[] = {
	[FREE_CACHED] = { "thread cache" },
	[FREE_TRANSFER] = { "transfer cache" }, /* for threads to take */
	[FREE_OBJECT] = { "span" },		/* an object of a span */
	[FREE_NORMAL] = { "page heap" },	/* pages */
	[FREE_RETURNED] = { "returned" },	/* addresses whose memory the system has again */
	{ NULL },
};

static unsigned int tcmalloc_free_kind(const struct heap *base, size_t number, allocation_id id,
				       struct block block)
{
	const struct tcmalloc *tc = &((const struct tcmalloc_heap *)base)->list.items[number];
	const struct tcmalloc_span *span = tcmalloc_find_span(tc, block.start);

	if (block.state == BLOCK_CACHED)
		return FREE_CACHED;
	if (span && span_location(span) == SPAN_NORMAL)
		return FREE_NORMAL;
	if (span && span_location(span) == SPAN_RETURNED)
		return FREE_RETURNED;
	return tcmalloc_find_cached(tc, block.start) ? FREE_TRANSFER : FREE_OBJECT;
}

/* Visit the memory that MallocExtension::ReleaseFreeMemory() gives back. */
static void tcmalloc_visit_spare(const struct heap *base, const struct allocation_index *index,
				 void (*visit)(void *data, const struct spare *spare), void *data)
{
	const struct tcmalloc_heap *heap = (const struct tcmalloc_heap *)base;

	for (size_t i = 0; i < heap->list.count; i++)
		array_for_each(span, &heap->list.items[i].spans) {
			struct spare spare = { span->start, span_end(span), SPARE_INSIDE,
					       base->first_arena + (arena_number)i };

			if (span_location(span) == SPAN_NORMAL)
				visit(data, &spare);
		}
}

/* Classes are an eighth of the size apart, or a little more where that makes spans alike. */
static bool tcmalloc_size_fits(uint64_t size, uint64_t wanted, bool exactly)
{
	uint64_t spacing = wanted / 8 < 16 ? 16 : wanted / 8;

	return size - wanted < (wanted < 2 * PAGE ? spacing : spacing + 2 * PAGE);
}

/* Describe which cache has the object, or which thread's it is. */
static void tell_object(const struct tcmalloc *tc, const struct tcmalloc_span *span,
			uint64_t address, char *ret, size_t size)
{
	uint64_t bytes = tc->classes[span_class(span)];
	uint64_t start = span->start + (address - span->start) / bytes * bytes;
	const struct cached_object *cached = tcmalloc_find_cached(tc, start);

	if (cached && cached->cache != TRANSFER_CACHE && tc->caches.items[cached->cache].thread)
		snprintf(ret, size,
			 "in the cache of thread %" PRIu32 ", of the class of %" PRIu64 " bytes",
			 tc->caches.items[cached->cache].thread, bytes);
	else if (cached)
		snprintf(ret, size, "in a %s, of the class of %" PRIu64 " bytes",
			 cached->cache == TRANSFER_CACHE ? "transfer cache" : "thread's cache",
			 bytes);
	else
		snprintf(ret, size,
			 "an object of the span at %#" PRIx64 ", of the class of %" PRIu64 " bytes",
			 span->start, bytes);
}

static bool tell_span(const struct tcmalloc *tc, uint64_t address, char *ret, size_t size)
{
	const struct tcmalloc_span *span = tcmalloc_find_span(tc, address);

	if (!span)
		return false;
	if (span_location(span) != SPAN_IN_USE)
		snprintf(ret, size, "a free span of %" PRIu64 " pages%s",
			 span->bytes >> tc->page_shift,
			 span_location(span) == SPAN_RETURNED ? ", returned to the system" : "");
	else if (span_class(span) == 0)
		snprintf(ret, size, "the span of a %s allocation",
			 span_is_sampled(span) ? "sampled" : "large");
	else
		tell_object(tc, span, address, ret, size);
	return true;
}

static bool tell_metadata(const struct tcmalloc *tc, uint64_t address, char *ret, size_t size)
{
	array_for_each(cache, &tc->caches)
		if (address - cache->address < lists_bytes(tc) + CACHE_REST) {
			snprintf(ret, size,
				 cache->thread ? "in the cache of thread %" PRIu32
					       : "in a thread's cache",
				 cache->thread);
			return true;
		}
	array_for_each(span, &tc->spans)
		if (address - span->metadata < span_bytes(tc)) {
			snprintf(ret, size, "the metadata of the span at %#" PRIx64, span->start);
			return true;
		}
	array_for_each(leaf, &tc->leaves)
		if (address - leaf->start < leaf->end - leaf->start) {
			snprintf(ret, size, "in the page map");
			return true;
		}
	return false;
}

static bool tell_rest(const struct tcmalloc *tc, uint64_t address, char *ret, size_t size)
{
	if (address - tc->central.start < tc->central.end - tc->central.start)
		snprintf(ret, size, "in the central caches");
	else if (address - tc->root < tcmalloc_root_bytes(tc))
		snprintf(ret, size, "in the root of the page map");
	else
		return false;
	return true;
}

static bool tcmalloc_tell(const struct heap *base, uint64_t address, char *ret, size_t size)
{
	const struct tcmalloc_heap *heap = (const struct tcmalloc_heap *)base;

	array_for_each(tc, &heap->list)
		if (tell_span(tc, address, ret, size) || tell_metadata(tc, address, ret, size) ||
		    tell_rest(tc, address, ret, size))
			return true;
	return false;
}

const struct allocator allocator_tcmalloc = {
	.name = "tcmalloc",
	.summary = "gperftools' tcmalloc 2.8 to 2.18",
	.narrow = true,
	.alignment = ALIGNMENT,
	.lives_in = heap_has_arena_in,
	.heap_size = sizeof(struct tcmalloc_heap),
	.noting = &tcmalloc_noting,
	.spare = tcmalloc_visit_spare,
	FILL_SLOTS(tcmalloc, open, walk, close, arena_kinds, free_kinds, free_kind, size_fits, tell,
		   visit_structure),
};
