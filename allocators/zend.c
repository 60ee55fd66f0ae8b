/*
 * The heap of the Zend engine: PHP 7.3 to 8.4.
 *
 * Nothing is needed but the dump's memory: no symbols, no debug information. See zend/zend.h for
 * the layout, zend/search.c for how chunks are found. What lives longer than a request is from
 * malloc(), as is all with USE_ZEND_ALLOC=0.
 */
#include "allocators/zend/zend.h"

#include "analyzer/heap/sink.h"
#include "analyzer/program/symbols.h"

#include <inttypes.h>

enum { FREE_SLOT, FREE_PAGES, FREE_CHUNK };

static const struct free_kind free_kinds[] = {
	[FREE_SLOT] = { "free list" },	    /* of a bin */
	[FREE_PAGES] = { "free pages" },    /* of a chunk in use */
	[FREE_CHUNK] = { "cached chunks" }, /* whole ones, kept for later */
	{ NULL },
};

static const struct arena_kind arena_kinds[] = {
	{ .name = "zend", .group = "Heaps of PHP" },
	{ NULL },
};

static const struct zend_heap *of(const struct heap *heap)
{
	return (const struct zend_heap *)heap;
}

static void zend_close(struct heap *base)
{
	struct zend_heap *heap = (struct zend_heap *)base;

	arrays_release(&heap->spaces, &heap->chunks, &heap->others, &heap->nodes);
}

static void set_account(struct zend_heap *heap, struct memory_account *account)
{
	arrays_use(account, &heap->spaces, &heap->chunks, &heap->others, &heap->nodes);
}

static void report_search(const struct zend_heap *heap)
{
	struct findings *findings = heap->context.findings;

	heap_damage_report(&heap->heads, findings, "zend", "heaps that make no sense",
			   "their chunks are not counted, and what they refer to is not leaked");
	heap_damage_report(&heap->rings, findings, "zend", "heaps whose lists of chunks are broken",
			   "chunks whose head is sound are found all the same");
	heap_damage_report(&heap->huge_damage, findings, "zend",
			   "lists of huge blocks that lead elsewhere",
			   "what follows in them is not counted");
}

static struct error *zend_open(struct heap *base, const struct heap_context *context, bool *ret)
{
	struct zend_heap *heap = (struct zend_heap *)base;

	if (!program_has_code(context->program, "php", "zend_startup"))
		return NULL;
	heap->context = *context;
	set_account(heap, context->account);
	TRY(zend_search(heap));
	report_search(heap);
	if (heap->chunks.count == 0)
		return NULL;
	array_for_each(chunk, &heap->chunks)
		TRY(array_append(
			&heap->heap.owned,
			(struct memory_range){ chunk->start, chunk->start + chunk->size }));
	*ret = true;
	return NULL;
}

/* Leave out what overlaps the regions of other heaps, which were walked before. */
static struct error *drop_overlapping(struct zend_heap *heap, struct block_sink *sink)
{
	size_t kept = 0;

	TRY(block_sink_order(sink));
	for (size_t i = 0; i < heap->chunks.count; i++) {
		struct zend_chunk chunk = heap->chunks.items[i];
		uint64_t end = chunk.start + chunk.size;
		struct block around;

		if (block_sink_place(sink, chunk.start, end, &around) == SINK_APART)
			heap->chunks.items[kept++] = chunk;
		else
			findings_add(
				heap->context.findings, FINDING_INCOMPLETE,
				"zend: the chunk at %#" PRIx64
				" overlaps the heap of another allocator: its blocks are not counted",
				chunk.start);
	}
	heap->chunks.count = kept;
	return NULL;
}

/*
 * The heap counts its bytes in use; a thread may have been about to take or free a block, or pages
 * of a chunk.
 */
static void check_counts(struct zend_heap *heap)
{
	uint64_t at_once = program_is_at_work(heap->context.program)
				   ? ZEND_CHUNK
				   : zend_bins[ZEND_BINS - 1].size;

	array_for_each(space, &heap->spaces) {
		uint64_t more = space->used > space->size ? space->used - space->size
							  : space->size - space->used;

		if (more > at_once)
			heap_damage_note(&heap->counts, space->main + ZEND_HEAP);
	}
}

static struct error *zend_walk(struct heap *base, struct block_sink *sink)
{
	struct zend_heap *heap = (struct zend_heap *)base;
	struct findings *findings = heap->context.findings;

	TRY(drop_overlapping(heap, sink));
	TRY(zend_add_blocks(heap, base->first_arena, sink));
	check_counts(heap);
	heap_damage_report(&heap->lists, findings, "zend",
			   "lists of free blocks that lead elsewhere",
			   "what may follow in them counts as used, and is not leaked");
	heap_damage_report(&heap->pages, findings, "zend", "pages of chunks that make no sense",
			   "they are not counted, and what they refer to is not leaked");
	heap_damage_report(&heap->counts, findings, "zend",
			   "heaps that count other bytes in use than their blocks have",
			   "the blocks count");
	array_for_each(space, &heap->spaces)
		TRY(array_append(&base->arenas,
				 (struct arena){ arena_kinds, space->main + ZEND_HEAP, space->held,
						 space->real_size }));
	return NULL;
}

static unsigned int zend_free_kind(const struct heap *heap, size_t number, allocation_id id,
				   struct block block)
{
	if (block.start % ZEND_CHUNK == 0)
		return FREE_CHUNK;
	return block.start % ZEND_PAGE == 0 && block.size % ZEND_PAGE == 0 ? FREE_PAGES : FREE_SLOT;
}

static struct error *visit_runs(const struct zend_heap *heap, const struct zend_chunk *chunk,
				unit_visit visit, void *data)
{
	static const struct unit_kind kind = { "run" };
	struct view view = { heap->context.image };
	struct zend_head head;

	if (!zend_read_head(&view, &heap->spaces.items[chunk->space], chunk->start, &head))
		return NULL;
	for (uint32_t i = 1, next; i < ZEND_PAGES; i = next) {
		struct zend_page page = zend_read_page(&head, i);
		uint64_t start = chunk->start + (uint64_t)i * ZEND_PAGE;

		next = page.first + page.count > i ? page.first + page.count : i + 1;
		if (page.kind == ZEND_RUN && page.first == i)
			TRY(visit(data, heap->heap.allocator,
				  &(struct heap_unit){ &kind, start,
						       start + (uint64_t)page.count * ZEND_PAGE,
						       zend_bins[page.bin].size }));
	}
	return NULL;
}

static struct error *zend_visit_units(const struct heap *base, unit_visit visit, void *data)
{
	static const struct unit_kind kind = { "chunk", .given_back = true };

	array_for_each(chunk, &of(base)->chunks) {
		if (chunk->kind != ZEND_CHUNK_RING && chunk->kind != ZEND_CHUNK_CACHED)
			continue;
		TRY(visit(
			data, base->allocator,
			&(struct heap_unit){ &kind, chunk->start, chunk->start + chunk->size, 0 }));
		if (chunk->kind == ZEND_CHUNK_RING)
			TRY(visit_runs(of(base), chunk, visit, data));
	}
	return NULL;
}

static bool zend_size_fits(uint64_t size, uint64_t wanted, bool exactly)
{
	for (size_t i = 0; i < ZEND_BINS; i++)
		if (wanted <= zend_bins[i].size)
			return size == zend_bins[i].size;
	return size - wanted < ZEND_PAGE;
}

static bool zend_keeps(const struct heap *heap, struct block block)
{
	return number_list_has(&of(heap)->nodes, block.start);
}

static bool zend_tell(const struct heap *base, uint64_t address, char *ret, size_t size)
{
	const struct zend_heap *heap = of(base);
	const struct zend_chunk *chunk = zend_find_chunk(heap, address);
	const struct zend_space *space;
	struct view view = { heap->context.image };
	struct zend_head head;
	struct zend_page page;

	if (!chunk)
		return false;
	space = &heap->spaces.items[chunk->space];
	if (chunk->kind == ZEND_CHUNK_CACHED) {
		snprintf(ret, size, "a chunk of PHP that it keeps for later");
	} else if (address - chunk->start < ZEND_PAGE) {
		snprintf(ret, size, "the head of a chunk of PHP");
	} else {
		if (!zend_read_head(&view, space, chunk->start, &head))
			return false;
		page = zend_read_page(&head, (uint32_t)((address - chunk->start) / ZEND_PAGE));
		if (page.kind != ZEND_RUN)
			return false;
		snprintf(ret, size, "in a run of PHP, of blocks of %" PRIu32 " bytes",
			 zend_bins[page.bin].size);
	}
	return true;
}

static bool zend_tell_used(const struct heap *heap, uint64_t start, char *ret, size_t size)
{
	if (!zend_keeps(heap, (struct block){ .start = start }))
		return false;
	snprintf(ret, size, "where PHP has the address of a huge block");
	return true;
}

/* Heads of chunks, which are pages of their own. */
static struct error *zend_visit_structure(const struct heap *base, program_range_visitor *visit,
					  void *data)
{
	array_for_each(chunk, &of(base)->chunks) {
		if (chunk->kind == ZEND_CHUNK_RING)
			TRY(visit(data, chunk->start, ZEND_PAGE));
	}
	return NULL;
}

const struct allocator allocator_zend = {
	.name = "zend",
	.summary = "the heap of PHP's Zend engine, 7.3 to 8.4",
	.is_private = true,
	.is_last = true,
	.alignment = ZEND_UNIT,
	.arena_kinds = arena_kinds,
	.free_kinds = free_kinds,
	.heap_size = sizeof(struct zend_heap),
	FILL_SLOTS(zend, open, close, walk, free_kind, visit_units, size_fits, keeps, tell,
		   tell_used, visit_structure),
};
