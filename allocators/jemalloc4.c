/*
 * jemalloc 3.6 and 4.5.
 *
 * Nothing is needed but the dump's memory: no symbols, no debug information. See
 * jemalloc4/jemalloc4.h for the layouts, jemalloc4/chunks.c for how chunks are found.
 */
#include "allocators/jemalloc4/jemalloc4.h"

#include <inttypes.h>

static void jemalloc4_close(struct heap *base)
{
	struct jemalloc4_heap *heap = (struct jemalloc4_heap *)base;

	array_release(&heap->chunks);
	array_release(&heap->runs);
	array_release(&heap->arenas);
	array_release(&heap->cached);
	array_release(&heap->own);
	array_release(&heap->bases);
	array_release(&heap->owned);
	free(heap);
}

static void cleanup_jemalloc4_close(struct jemalloc4_heap **heap)
{
	if (*heap)
		jemalloc4_close(&(*heap)->heap);
}

static void account(struct jemalloc4_heap *heap)
{
	struct memory_account *account = heap->context.account;

	heap->chunks.memory.account = account;
	heap->runs.memory.account = account;
	heap->arenas.memory.account = account;
	heap->cached.memory.account = account;
	heap->own.memory.account = account;
	heap->bases.memory.account = account;
	heap->owned.memory.account = account;
}

static struct error *list_owned(struct jemalloc4_heap *heap)
{
	array_for_each(chunk, &heap->chunks)
		TRY(array_append(
			&heap->owned,
			(struct memory_range){ chunk->start, chunk->start + chunk_bytes(heap) }));
	array_for_each(base, &heap->bases)
		TRY(array_append(&heap->owned, *base));
	array_for_each(run, &heap->runs)
		if (run->kind >= RUN_HUGE)
			TRY(array_append(&heap->owned,
					 (struct memory_range){ run->start, run_end(run) }));
	heap->owned.count = memory_ranges_join(heap->owned.items, heap->owned.count);
	return NULL;
}

static struct error *jemalloc4_open(const struct heap_context *context, struct heap **ret)
{
	_cleanup_(jemalloc4_close) struct jemalloc4_heap *heap = calloc(1, sizeof(*heap));
	bool found;

	if (!heap)
		return &error_no_memory;
	heap->context = *context;
	account(heap);
	TRY(jemalloc4_find_chunks(heap, &found));
	if (found)
		TRY(jemalloc4_find_module(heap, &found));
	if (!found)
		return NULL;
	TRY(jemalloc4_read_runs(heap));
	TRY(jemalloc4_find_caches(heap));
	TRY(jemalloc4_find_huge(heap));
	TRY(list_owned(heap));
	*ret = &take(heap)->heap;
	return NULL;
}

static void report(const struct jemalloc4_heap *heap, struct findings *findings)
{
	heap_damage_report(&heap->chunks_cut, findings, "jemalloc4",
			   "chunks whose map of pages makes no sense",
			   "what follows in them is not counted");
	heap_damage_report(&heap->bitmaps, findings, "jemalloc4",
			   "runs whose bitmap contradicts their count of free regions",
			   "their regions count as the bitmaps say");
	heap_damage_report(&heap->strangers, findings, "jemalloc4",
			   "entries of thread caches that are no allocations of their size class",
			   "they are ignored");
	heap_list_damage_report(&heap->lists, findings, "jemalloc4", "regions");
}

/* The headers of chunks, memory for metadata, and what jemalloc allocates for itself. */
static struct error *claim_own(const struct jemalloc4_heap *heap, struct block_sink *sink)
{
	array_for_each(chunk, &heap->chunks)
		TRY(block_sink_claim(sink, chunk->start,
				     chunk->start + (uint64_t)heap->bias * PAGE));
	array_for_each(base, &heap->bases)
		TRY(block_sink_claim(sink, base->start, base->end));
	array_for_each(own, &heap->own) {
		struct memory_range range;

		if (jemalloc4_find_region(heap, *own, &range))
			TRY(block_sink_claim(sink, range.start, range.end));
	}
	return NULL;
}

static struct error *jemalloc4_walk(struct heap *base, arena_number first, struct block_sink *sink)
{
	struct jemalloc4_heap *heap = (struct jemalloc4_heap *)base;

	TRY(claim_own(heap, sink));
	TRY(jemalloc4_add_blocks(heap, first, sink));
	report(heap, heap->context.findings);
	return NULL;
}

enum { ARENA_FIRST, ARENA_FURTHER };

static const struct arena_kind jemalloc4_arena_kinds[] = {
	[ARENA_FIRST] = { .name = "first", .group = "First arenas of jemalloc" },
	[ARENA_FURTHER] = { .name = "further",
			    .group = "Further arenas of jemalloc",
			    .is_extra = true },
	{ NULL },
};

enum { FREE_CACHED, FREE_REGION, FREE_DIRTY, FREE_CLEAN, FREE_CHUNKS };

static const struct free_kind jemalloc4_free_kinds[] = {
	[FREE_CACHED] = { "tcache" },
	[FREE_REGION] = { "run" },    /* a region of a run */
	[FREE_DIRTY] = { "dirty" },   /* pages, as they were when freed */
	[FREE_CLEAN] = { "clean" },   /* without memory, or never used */
	[FREE_CHUNKS] = { "chunks" }, /* whole chunks */
	{ NULL },
};

static size_t jemalloc4_arena_count(const struct heap *base)
{
	return ((const struct jemalloc4_heap *)base)->arenas.count;
}

static struct arena jemalloc4_arena(const struct heap *base, size_t number)
{
	const struct jemalloc4_heap *heap = (const struct jemalloc4_heap *)base;
	const struct jemalloc_arena *arena = &heap->arenas.items[number];

	return (struct arena){
		.kind = &jemalloc4_arena_kinds[arena->index > 0 ? ARENA_FURTHER : ARENA_FIRST],
		.address = arena->address,
		.size = arena->bytes,
	};
}

static unsigned int jemalloc4_free_kind(const struct heap *base, size_t number, allocation_id id,
					struct block block)
{
	const struct run *run =
		jemalloc4_find_run((const struct jemalloc4_heap *)base, block.start);

	if (block.state == BLOCK_CACHED)
		return FREE_CACHED;
	if (!run || run->kind == RUN_SMALL)
		return FREE_REGION;
	if (run->kind == RUN_CHUNKS)
		return FREE_CHUNKS;
	return run->kind == RUN_DIRTY ? FREE_DIRTY : FREE_CLEAN;
}

static const struct memory_range *jemalloc4_owned(const struct heap *base, size_t *ret_count)
{
	const struct jemalloc4_heap *heap = (const struct jemalloc4_heap *)base;

	*ret_count = heap->owned.count;
	return heap->owned.items;
}

static bool jemalloc4_lives_in(const struct heap *base, uint64_t start, uint64_t end)
{
	const struct jemalloc4_heap *heap = (const struct jemalloc4_heap *)base;

	return heap->module_start == start && heap->module_end == end;
}

/* Large ones have a page more, as 4.5 begins them anywhere in the first. */
static bool jemalloc4_size_fits(uint64_t size, uint64_t wanted, bool exactly)
{
	if (jemalloc_size_fits(size, wanted, exactly))
		return true;
	return size % PAGE == 0 && size > 2 * PAGE &&
	       (size - PAGE < wanted || jemalloc_size_fits(size - PAGE, wanted, exactly));
}

static bool jemalloc4_tell(const struct heap *base, uint64_t address, char *ret, size_t size)
{
	const struct jemalloc4_heap *heap = (const struct jemalloc4_heap *)base;
	const struct run *run = jemalloc4_find_run(heap, address);
	struct memory_range range;

	if (run && jemalloc4_find_region(heap, address, &range) &&
	    jemalloc_has_address(&heap->own, range.start)) {
		snprintf(ret, size, "in what jemalloc allocated for itself at %#" PRIx64,
			 range.start);
		return true;
	}
	if (run) {
		snprintf(ret, size, "in the run of %" PRIu64 " bytes at %#" PRIx64, run->bytes,
			 run->start);
		return true;
	}
	array_for_each(chunk, &heap->chunks)
		if (address - chunk->start < (uint64_t)heap->bias * PAGE) {
			snprintf(ret, size, "in the header of the chunk at %#" PRIx64,
				 chunk->start);
			return true;
		}
	return false;
}

const struct allocator allocator_jemalloc4 = {
	.name = "jemalloc4",
	.summary = "jemalloc 3.6 and 4.5",
	.alignment = ALIGNMENT,
	.open = jemalloc4_open,
	.walk = jemalloc4_walk,
	.close = jemalloc4_close,
	.arena_count = jemalloc4_arena_count,
	.arena = jemalloc4_arena,
	.arena_kinds = jemalloc4_arena_kinds,
	.free_kinds = jemalloc4_free_kinds,
	.free_kind = jemalloc4_free_kind,
	.size_fits = jemalloc4_size_fits,
	.lives_in = jemalloc4_lives_in,
	.owned = jemalloc4_owned,
	.tell = jemalloc4_tell,
};
