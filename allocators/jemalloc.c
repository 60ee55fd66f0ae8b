/*
 * jemalloc 5.0 to 5.3.
 *
 * Nothing is needed but the dump's memory: no symbols, no debug information. See
 * jemalloc/jemalloc.h for the layouts, jemalloc/search.c for how the heap is found.
 */
#include "allocators/jemalloc/jemalloc.h"

#include <inttypes.h>

void jemalloc_deinit(struct jemalloc *je)
{
	arrays_release(&je->extents, &je->leaves, &je->changing, &je->bases, &je->cached,
		       &je->stacks, &je->bins, &je->arenas);
}

static void jemalloc_close(struct heap *base)
{
	struct jemalloc_heap *heap = (struct jemalloc_heap *)base;

	array_for_each(je, &heap->list)
		jemalloc_deinit(je);
	array_release(&heap->list);
}

static struct error *add_owned(struct jemalloc_heap *heap, const struct jemalloc *je)
{
	array_for_each(base, &je->bases)
		TRY(array_append(&heap->heap.owned, *base));
	array_for_each(leaf, &je->leaves)
		TRY(array_append(&heap->heap.owned, *leaf));
	array_for_each(extent, &je->extents)
		TRY(array_append(&heap->heap.owned,
				 (struct memory_range){ extent->start, extent_end(extent) }));
	return NULL;
}

static struct error *read_heap(struct jemalloc_heap *heap, struct jemalloc *je)
{
	TRY(jemalloc_check_extents(je, heap->context.image));
	TRY(jemalloc_find_arenas(je, &heap->context));
	TRY(jemalloc_find_huge_pages(je, &heap->context));
	TRY(jemalloc_find_caches(je, &heap->context));
	return add_owned(heap, je);
}

static struct error *jemalloc_open(struct heap *base, const struct heap_context *context, bool *ret)
{
	struct jemalloc_heap *heap = (struct jemalloc_heap *)base;

	heap->context = *context;
	heap->list.memory.account = context->account;
	TRY(jemalloc_search(heap));
	array_for_each(je, &heap->list)
		TRY(read_heap(heap, je));
	*ret = heap->list.count > 0;
	return NULL;
}

static void report(const struct jemalloc *je, struct findings *findings)
{
	heap_damage_report(&je->overlaps, findings, "jemalloc", "extents that overlap others",
			   "they are not counted");
	heap_damage_report(&je->misfits, findings, "jemalloc",
			   "extents whose size or place does not fit their size class",
			   "they are not counted");
	heap_damage_report(&je->absent, findings, "jemalloc",
			   "extents that the core lacks, or whose metadata it lacks",
			   "what is free of them is unknown");
	if (je->bitmaps.count > 0)
		findings_add(
			findings, FINDING_INCOMPLETE,
			"jemalloc: slabs whose bitmap contradicts their count of free regions: %" PRIu64
			", the first at %#" PRIx64 ", with %" PRIu32
			" free regions by its bitmap and %" PRIu32
			" by its count; their regions count as the bitmaps say",
			je->bitmaps.count, je->bitmaps.first, je->found_free, je->stated_free);
	heap_damage_report(&je->strangers, findings, "jemalloc",
			   "entries of thread caches that are no allocations of their size class",
			   "they are ignored");
	heap_list_damage_report(&je->lists, findings, "jemalloc", "regions");
	if (je->changing.count > 0)
		findings_add(
			findings, FINDING_NOTE,
			"jemalloc: extents that threads were changing when the core was taken: %zu; they are not counted",
			je->changing.count);
	if (je->changing_caches > 0)
		findings_add(
			findings, FINDING_NOTE,
			"jemalloc: caches that threads may have been changing when the core was taken: %zu; the latest block of each may be in use, not free",
			je->changing_caches);
}

enum { ARENA_FIRST, ARENA_FURTHER };

static const struct arena_kind jemalloc_arena_kinds[] = {
	[ARENA_FIRST] = { .name = "first", .group = "First arenas of jemalloc" },
	[ARENA_FURTHER] = { .name = "further",
			    .group = "Further arenas of jemalloc",
			    .is_extra = true },
	{ NULL },
};

static struct error *jemalloc_walk(struct heap *base, struct block_sink *sink)
{
	struct jemalloc_heap *heap = (struct jemalloc_heap *)base;

	array_for_each(je, &heap->list) {
		arena_number first = base->first_arena + (arena_number)base->arenas.count;

		TRY(jemalloc_claim_metadata(je, sink));
		TRY(jemalloc_add_blocks(je, &heap->context, first, sink));
		report(je, heap->context.findings);
		array_for_each(arena, &je->arenas) {
			const struct arena_kind *kind =
				&jemalloc_arena_kinds[arena > je->arenas.items ? ARENA_FURTHER
									       : ARENA_FIRST];

			TRY(array_append(&base->arenas,
					 (struct arena){ kind, arena->address, arena->bytes }));
		}
	}
	return NULL;
}

enum { FREE_CACHED, FREE_REGION, FREE_DIRTY, FREE_MUZZY, FREE_RETAINED };

static const struct free_kind jemalloc_free_kinds[] = {
	[FREE_CACHED] = { "tcache" },
	[FREE_REGION] = { "slab" },	  /* a region of a slab */
	[FREE_DIRTY] = { "dirty" },	  /* pages, as they were when freed */
	[FREE_MUZZY] = { "muzzy" },	  /* the system may take them */
	[FREE_RETAINED] = { "retained" }, /* addresses without memory */
	{ NULL },
};

/* The jemalloc of the number-th arena, and the number in it. */
static const struct jemalloc *find_arena(const struct heap *base, size_t *number)
{
	const struct jemalloc_heap *heap = (const struct jemalloc_heap *)base;
	size_t i = 0;

	while (*number >= heap->list.items[i].arenas.count)
		*number -= heap->list.items[i++].arenas.count;
	return &heap->list.items[i];
}

static unsigned int jemalloc_free_kind(const struct heap *base, size_t number, allocation_id id,
				       struct block block)
{
	const struct jemalloc *je = find_arena(base, &number);
	const struct jemalloc_extent *extent = jemalloc_find_extent(je, block.start);

	if (block.state == BLOCK_CACHED)
		return FREE_CACHED;
	if (!extent || !is_free_extent(&je->layout, extent))
		return FREE_REGION;
	return FREE_DIRTY + extent_state(&je->layout, extent) - EXTENT_DIRTY;
}

/* Visit the memory that a purge of the arenas gives back. */
static void jemalloc_visit_spare(const struct heap *base, const struct allocation_index *index,
				 void (*visit)(void *data, const struct spare *spare), void *data)
{
	const struct jemalloc_heap *heap = (const struct jemalloc_heap *)base;
	arena_number first = base->first_arena;

	array_for_each(je, &heap->list) {
		array_for_each(extent, &je->extents) {
			unsigned int state = extent_state(&je->layout, extent);
			struct spare spare = {
				.start = extent->start,
				.end = extent_end(extent),
				.kind = SPARE_INSIDE,
				.arena = first + je->arena_numbers[arena_index(extent)],
			};

			if (state == EXTENT_DIRTY || state == EXTENT_MUZZY)
				visit(data, &spare);
		}
		first += (arena_number)je->arenas.count;
	}
}

static bool jemalloc_lives_in(const struct heap *base, uint64_t start, uint64_t end)
{
	const struct jemalloc_heap *heap = (const struct jemalloc_heap *)base;

	array_for_each(je, &heap->list)
		if (je->root >= start && je->root < end)
			return true;
	return false;
}

const struct allocator allocator_jemalloc = {
	.name = "jemalloc",
	.summary = "jemalloc 5.0 to 5.3",
	.narrow = true,
	.alignment = ALIGNMENT,
	.heap_size = sizeof(struct jemalloc_heap),
	.spare = jemalloc_visit_spare,
	.noting = &jemalloc_noting,
	FILL_SLOTS(jemalloc, open, walk, close, arena_kinds, free_kinds, free_kind, size_fits,
		   lives_in, tell, visit_structure),
};
