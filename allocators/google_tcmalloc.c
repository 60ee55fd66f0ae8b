/*
 * Google's tcmalloc (github.com/google/tcmalloc) of 2023 to 2026. gperftools' is in tcmalloc.c.
 *
 * Nothing is needed but the dump's memory: no symbols, no debug information. See
 * google_tcmalloc/google_tcmalloc.h for the layouts, google_tcmalloc/search.c for how the heap is
 * found.
 */
#include "allocators/google_tcmalloc/google_tcmalloc.h"

#include <inttypes.h>

void google_tcmalloc_deinit(struct google_tcmalloc *tc)
{
	arrays_release(&tc->spans, &tc->leaves, &tc->cached, &tc->metadata);
}

static void google_close(struct heap *base)
{
	struct google_heap *heap = (struct google_heap *)base;

	array_for_each(tc, &heap->list)
		google_tcmalloc_deinit(tc);
	array_release(&heap->list);
}

static struct error *add_owned(struct google_heap *heap, const struct google_tcmalloc *tc)
{
	array_for_each(range, &tc->metadata)
		TRY(array_append(&heap->heap.owned, *range));
	array_for_each(span, &tc->spans)
		TRY(array_append(&heap->heap.owned,
				 (struct memory_range){ span->start, span_end(span) }));
	return NULL;
}

static struct error *google_open(struct heap *base, const struct heap_context *context, bool *ret)
{
	struct google_heap *heap = (struct google_heap *)base;

	heap->context = *context;
	heap->list.memory.account = context->account;
	TRY(google_tcmalloc_search(heap));
	array_for_each(tc, &heap->list)
		TRY(add_owned(heap, tc));
	*ret = heap->list.count > 0;
	return NULL;
}

#define NAME "Google's tcmalloc"

static void report(const struct google_tcmalloc *tc, struct findings *findings)
{
	heap_damage_report(&tc->overlaps, findings, NAME, "spans that overlap others",
			   "they are not counted");
	heap_damage_report(&tc->misfits, findings, NAME, "spans whose size or class cannot be",
			   "they are not counted");
	heap_damage_report(&tc->absent, findings, NAME, "spans whose free objects the core lacks",
			   "which of their objects are free is unknown");
	heap_damage_report(&tc->lists, findings, NAME,
			   "spans whose list of free objects is damaged",
			   "what may follow in it counts as used");
	heap_damage_report(&tc->counts, findings, NAME,
			   "spans whose list of free objects contradicts their count of used ones",
			   "their objects count as the list says");
	heap_damage_report(&tc->lengths, findings, NAME, "lists of free objects that end too soon",
			   "what may follow in them counts as used");
	if (!tc->has_caches)
		findings_add(findings, FINDING_INCOMPLETE,
			     NAME ": no cache of a processor or thread was found: what is in them "
				  "counts as used");
}

static const struct arena_kind google_arena_kinds[] = {
	{ .name = "heap", .group = "Heaps of Google's tcmalloc" },
	{ NULL },
};

static struct error *google_walk(struct heap *base, struct block_sink *sink)
{
	struct google_heap *heap = (struct google_heap *)base;

	array_for_each(tc, &heap->list) {
		arena_number arena = base->first_arena + (arena_number)base->arenas.count;

		array_for_each(range, &tc->metadata)
			TRY(block_sink_claim(sink, range->start, range->end));
		TRY(google_add_blocks(tc, &heap->context, arena, sink));
		report(tc, heap->context.findings);
		TRY(array_append(&base->arenas,
				 (struct arena){ google_arena_kinds, tc->root, tc->bytes }));
	}
	return NULL;
}

enum { FREE_CPU, FREE_THREAD, FREE_TRANSFER, FREE_PROXY, FREE_OBJECT, FREE_PAGES };

static const struct free_kind google_free_kinds[] = {
	[FREE_CPU] = { "CPU cache" },
	[FREE_THREAD] = { "thread cache" },
	[FREE_TRANSFER] = { "transfer cache" }, /* for processors and threads to take */
	[FREE_PROXY] = { "proxy" },		/* of a sampled object */
	[FREE_OBJECT] = { "span" },		/* an object of a span */
	[FREE_PAGES] = { "page heap" },		/* pages of no span */
	{ NULL },
};

static unsigned int google_free_kind(const struct heap *base, size_t number, allocation_id id,
				     struct block block)
{
	const struct google_tcmalloc *tc = &((const struct google_heap *)base)->list.items[number];
	const struct google_span *span = google_find_span(tc, block.start);
	const struct cached_object *cached = google_find_cached(tc, block.start);

	(void)id;
	if (span && span->is_free)
		return FREE_PAGES;
	return cached ? FREE_CPU + cached->kind : FREE_OBJECT;
}

/* Classes are an eighth of the size apart, or up to a quarter where that makes spans alike. */
static bool google_size_fits(uint64_t size, uint64_t wanted, bool exactly)
{
	uint64_t spacing = wanted / 4 < 16 ? 16 : wanted / 4;

	(void)exactly;
	return size - wanted < (wanted < 2 * PAGE ? spacing : spacing + 2 * PAGE);
}

static void tell_object(const struct google_tcmalloc *tc, const struct google_span *span,
			uint64_t address, char *ret, size_t size)
{
	static const char *const caches[] = { "", "in a thread's cache", "in a transfer cache",
					      "what stands for a sampled allocation" };
	uint64_t bytes = tc->classes[span->class];
	uint64_t start = span->start + (address - span->start) / bytes * bytes;
	const struct cached_object *cached = google_find_cached(tc, start);

	if (cached && cached->kind == CACHE_CPU)
		snprintf(ret, size,
			 "in the cache of CPU %" PRIu32 ", of the class of %" PRIu64 " bytes",
			 cached->cpu, bytes);
	else if (cached)
		snprintf(ret, size, "%s, of the class of %" PRIu64 " bytes", caches[cached->kind],
			 bytes);
	else
		snprintf(ret, size,
			 "an object of the span at %#" PRIx64 ", of the class of %" PRIu64 " bytes",
			 span->start, bytes);
}

static bool tell_span(const struct google_tcmalloc *tc, uint64_t address, char *ret, size_t size)
{
	const struct google_span *span = google_find_span(tc, address);

	if (!span)
		return false;
	if (span->is_free)
		snprintf(ret, size, "%" PRIu64 " free pages of %" PRIu64 " bytes",
			 span->bytes >> tc->page_shift, UINT64_C(1) << tc->page_shift);
	else if (span->class == 0)
		snprintf(ret, size, "the span of a large or sampled allocation");
	else
		tell_object(tc, span, address, ret, size);
	return true;
}

static bool tell_metadata(const struct google_tcmalloc *tc, uint64_t address, char *ret,
			  size_t size)
{
	array_for_each(leaf, &tc->leaves)
		if (address - leaf->start < leaf->end - leaf->start) {
			snprintf(ret, size, "in the page map");
			return true;
		}
	array_for_each(span, &tc->spans)
		if (span->metadata && address - span->metadata < tc->links + tc->layout->size) {
			snprintf(ret, size, "the metadata of the span at %#" PRIx64, span->start);
			return true;
		}
	if (!LIST_HOLDER(tc->metadata.items, tc->metadata.count, start, end, address))
		return false;
	snprintf(ret, size, "in the metadata of tcmalloc");
	return true;
}

static bool google_tell(const struct heap *base, uint64_t address, char *ret, size_t size)
{
	const struct google_heap *heap = (const struct google_heap *)base;

	array_for_each(tc, &heap->list)
		if (tell_span(tc, address, ret, size) || tell_metadata(tc, address, ret, size))
			return true;
	return false;
}

const struct allocator allocator_google_tcmalloc = {
	.name = NAME,
	.summary = "Google's tcmalloc of 2023 to 2026",
	.alignment = ALIGNMENT,
	.lives_in = heap_has_arena_in,
	.heap_size = sizeof(struct google_heap),
	.noting = &google_noting,
	FILL_SLOTS(google, open, walk, close, arena_kinds, free_kinds, free_kind, size_fits, tell),
};
