/*
 * glibc's malloc: main arena, other arenas, mapped chunks, thread caches.
 *
 * Nothing is needed but the dump's memory: no symbols, no debug information. See glibc/glibc.h for
 * the layouts and where they come from, glibc/arenas.h for how arenas are found, glibc/lists.h for
 * what makes a chunk free, glibc/walk.h for the walk.
 */
#include "allocators/glibc/arenas.h"
#include "allocators/glibc/describe.h"
#include "allocators/glibc/lists.h"
#include "allocators/glibc/rings.h"
#include "allocators/glibc/structure.h"
#include "allocators/glibc/walk.h"
#include "analyzer/base/list.h"
#include "analyzer/image/memory_tags.h"

#include <inttypes.h>

static void glibc_close(struct heap *base)
{
	struct glibc_heap *heap = (struct glibc_heap *)base;

	arrays_release(&heap->cached, &heap->fast);
	bitmap_deinit(&heap->unsorted);
	arrays_release(&heap->thread_caches, &heap->tcaches, &heap->suspects, &heap->fast_links,
		       &heap->gaps, &heap->vouched, &heap->arena_addresses);
	table_release(&heap->arena_numbers);
	glibc_ring_memo_free(heap->rings);
	free(heap->broken);
	free(heap->odd_feet);
	free(heap->arenas);
	free(heap->subheaps);
	free(heap->parameters);
}

/*
 * True if malloc gives its blocks memory tags, because then it asks the kernel for memory with
 * tags. The kernel's state of a thread's tags would prove nothing, as any program may use tags.
 */
static bool gives_tags(const struct glibc_heap *heap)
{
	list_for_each(arena, heap->arenas, heap->arena_count) {
		if (image_has_memory_tags(heap->context.image, arena->top))
			return true;
	}
	return false;
}

static struct error *glibc_open(struct heap *base, const struct heap_context *context, bool *ret)
{
	struct glibc_heap *heap = (struct glibc_heap *)base;

	heap->context = *context;
	heap->word = image_word_size(context->image);
	heap->header = glibc_header(heap->word);
	heap->minimum = glibc_minimum(heap->word);
	heap->grain = ALIGNMENT;
	heap->caches = true;
	heap->piece_steps.left = 2 * context->image->size / heap->minimum;
	arrays_use(context->account, &heap->cached, &heap->fast, &heap->thread_caches,
		   &heap->tcaches, &heap->suspects, &heap->fast_links, &heap->gaps, &heap->vouched,
		   &heap->arena_addresses, &heap->arena_numbers);
	heap->rings = glibc_ring_memo_create();
	heap->links.seed = secret_factor();
	TRY(glibc_find_arenas(heap));
	TRY(glibc_find_orphans(heap));
	TRY(glibc_complete_arenas(heap));
	if (heap->home == 0 && heap->arena_count == 0)
		return NULL;
	heap->overhead = gives_tags(heap) ? heap->header : heap->word;
	heap->links.small = glibc_largest_small(heap);
	glibc_find_work(heap);
	*ret = true;
	return NULL;
}

static struct error *claim_arenas(struct glibc_heap *heap, struct block_sink *sink)
{
	list_for_each(arena, heap->arenas, heap->arena_count) {
		/* One that is not in the core has no address. */
		if (arena->address)
			TRY(block_sink_claim(sink, arena->address,
					     arena->address + arena->layout->size));
	}
	return NULL;
}

/* Walk the part of a main arena that sbrk() gave, if it has one. */
static struct error *walk_main(struct glibc_heap *heap, struct block_sink *sink, size_t arena,
			       uint64_t base, struct memory_range *ret_done)
{
	const struct region *region = image_find(heap->context.image, base);
	const struct view view = { heap->context.image };
	uint64_t stated = heap->arenas[arena].stated_size, end;
	struct glibc_stretch stretch;

	*ret_done = (struct memory_range){ 0 };
	if (base == 0 || stated == 0)
		return NULL;
	if (!region || !(region->rights & RIGHT_WRITE) || !region->bytes) {
		findings_add(heap->context.findings, FINDING_INCOMPLETE,
			     "the main heap, at %#" PRIx64
			     ", is not in the core: its allocations are not counted",
			     base);
		return NULL;
	}
	/* The arena's stated size, or more, if its memory is not in a row. */
	end = view_reach(&view, base, stated < UINT64_MAX - base ? base + stated : UINT64_MAX);
	end = MAX(end, region->end);
	while ((region = image_find(heap->context.image, end)) && (region->rights & RIGHT_WRITE) &&
	       !region->mapping)
		end = region->end;
	stretch = (struct glibc_stretch){ arena, base, end };
	TRY(glibc_walk_stretches(heap, sink, &stretch, 1, NULL, NULL));
	*ret_done = (struct memory_range){ base, stretch.end };
	return NULL;
}

/* Compare malloc's own counts with what was found. */
static void check_counts(struct glibc_heap *heap, const struct block_sink *sink)
{
	uint64_t count = 0, size = 0;
	struct block below = { 0 };

	for (size_t i = 0; i < heap->parameters_count; i++) {
		count += heap->parameters[i].mapped_count;
		size += heap->parameters[i].mapped_size;
	}
	if (heap->mapped_gap)
		block_sink_below(sink, heap->mapped_gap, &below);
	if (count > heap->mapped_count && below.start)
		findings_add(
			heap->context.findings, FINDING_INCOMPLETE,
			"%" PRIu64 " mmapped chunks of %" PRIu64
			" bytes, which malloc counts, were not found. The heap may be damaged at %#" PRIx64
			": the allocation below it, at %#" PRIx64 " of size %#" PRIx64
			", may have been overrun",
			count - heap->mapped_count,
			size > heap->mapped_size ? size - heap->mapped_size : 0, heap->mapped_gap,
			below.start, below.size);
	else if (count &&
		 (count != heap->mapped_count || (size % PAGE == 0 && size != heap->mapped_size)))
		findings_add(heap->context.findings, FINDING_INCOMPLETE,
			     "malloc counts %" PRIu64 " mmapped chunks of %" PRIu64
			     " bytes, but %" PRIu64 " of %" PRIu64 " bytes were found",
			     count, size, heap->mapped_count, heap->mapped_size);
	list_for_each(arena, heap->arenas, heap->arena_count) {
		if (glibc_arena_lacks(arena))
			findings_add(heap->context.findings,
				     arena->locked ? FINDING_NOTE : FINDING_INCOMPLETE,
				     "the main arena has %" PRIu64
				     " bytes from the system, but only %" PRIu64 " were found",
				     arena->stated_size, arena->size);
	}
}

static bool is_done(const struct memory_range *done, size_t count, uint64_t address)
{
	for (size_t i = 0; i < count; i++)
		if (address >= done[i].start && address < done[i].end)
			return true;
	return false;
}

/* All chunks are known: now the lists, which may lead anywhere. */
static struct error *settle(struct glibc_heap *heap, struct block_sink *sink)
{
	_cleanup_(image_advice_end) struct image_advice advice =
		image_advise_random(heap->context.image);

	TRY(block_sink_order(sink));
	TRY(glibc_follow_fast(heap, sink));
	TRY(glibc_settle_lists(heap, sink));
	TRY(glibc_hold_transit(heap, sink));
	TRY(glibc_check_lists(heap, sink));
	check_counts(heap, sink);
	return NULL;
}

enum { ARENA_MAIN, ARENA_THREAD, ARENA_MAPPED };

static const struct arena_kind glibc_arena_kinds[] = {
	[ARENA_MAIN] = { .name = "main", .group = "Main arenas" },
	[ARENA_THREAD] = { .name = "thread", .group = "Arenas of threads", .is_extra = true },
	[ARENA_MAPPED] = { .name = "mmapped",
			   .group = "Arenas of single mappings",
			   .used = "used, mmapped" },
	{ NULL },
};

/* List the arenas; the last one stands for the chunks with mappings of their own. */
static struct error *list_arenas(struct glibc_heap *heap)
{
	struct arena mapped = { .kind = &glibc_arena_kinds[ARENA_MAPPED],
				.size = heap->mapped_size };

	list_for_each(arena, heap->arenas, heap->arena_count)
		TRY(array_append(
			&heap->heap.arenas,
			(struct arena){ &glibc_arena_kinds[arena->main ? ARENA_MAIN : ARENA_THREAD],
					arena->address, arena->size, arena->stated_size }));
	list_for_each(parameters, heap->parameters, heap->parameters_count)
		mapped.stated_size += parameters->mapped_size;
	return array_append(&heap->heap.arenas, mapped);
}

static struct error *glibc_walk(struct heap *base, struct block_sink *sink)
{
	struct glibc_heap *heap = (struct glibc_heap *)base;
	_cleanup_(free) struct memory_range *done =
		calloc(heap->parameters_count + 1, sizeof(*done));
	size_t done_count = 0;

	block_sink_align(sink, heap->grain);
	TRY(done ? glibc_collect_lists(heap) : &error_no_memory);
	heap->first_block = block_sink_count(sink);
	TRY(claim_arenas(heap, sink));
	for (size_t i = 0; i < heap->arena_count; i++) {
		uint64_t heap_base;

		if (!heap->arenas[i].main)
			continue;
		heap_base = heap->parameters[done_count].base;
		/* If two arenas claim the same memory, the first one keeps it. */
		if (is_done(done, done_count, heap_base))
			heap_base = 0;
		heap->arenas[i].base = heap_base;
		TRY(walk_main(heap, sink, i, heap_base, &done[done_count]));
		done_count++;
	}
	TRY(glibc_walk_mapped(heap, sink, done, done_count));
	TRY(glibc_claim_padding(heap, sink));
	TRY(settle(heap, sink));
	return list_arenas(heap);
}

static const struct free_kind glibc_free_kinds[] = {
	[FREE_TCACHE] = { "tcache" },
	[FREE_FAST] = { "fast bin" },
	[FREE_UNSORTED] = { "unsorted bin" },
	[FREE_SMALL] = { "small bin" },
	[FREE_LARGE] = { "large bin" },
	[FREE_TOP] = { "top", .ends_heap = true },
	{ NULL },
};

static unsigned int glibc_free_kind(const struct heap *base, size_t number, allocation_id id,
				    struct block block)
{
	const struct glibc_heap *heap = (const struct glibc_heap *)base;
	uint64_t chunk = block.start - heap->header, size = block.size + heap->overhead;

	if (block.state == BLOCK_CACHED)
		return FREE_TCACHE;
	if (number < heap->arena_count && heap->arenas[number].top == chunk)
		return FREE_TOP;
	if (size <= glibc_largest_fast(heap) && number_list_has(&heap->fast, chunk))
		return FREE_FAST;
	if (heap->unsorted.words && bitmap_get(&heap->unsorted, id))
		return FREE_UNSORTED;
	return size <= glibc_largest_small(heap) ? FREE_SMALL : FREE_LARGE;
}

static bool glibc_size_fits(uint64_t size, uint64_t wanted, bool exactly)
{
	/*
	 * All but a word of a chunk, whose size is a multiple of 16, or but the header. With words
	 * of 4 and before 2.26, it is one of 8: where 12 is left of 16, either way gives that size
	 * for the same bytes.
	 */
	const bool narrow = size % 8 == 4;
	const unsigned int word = narrow ? 4 : 8, grain = 2 * word;
	const uint64_t overhead = narrow ? word : ALIGNMENT - size % ALIGNMENT;
	uint64_t chunk = (wanted + overhead + grain - 1) & ~((uint64_t)grain - 1);

	if (!exactly)
		return rounds_like_malloc(size, wanted);
	/* A chunk of its own mapping has whole pages. */
	if (!narrow && overhead == ALIGNMENT)
		return wanted <= size && size - wanted < PAGE;
	chunk = MAX(chunk, glibc_minimum(word));
	/* A rest of half the least chunk would be none. */
	return size == chunk - overhead || size == chunk - overhead + grain;
}

static bool glibc_lives_in(const struct heap *base, uint64_t start, uint64_t end)
{
	const struct glibc_heap *heap = (const struct glibc_heap *)base;

	for (size_t i = 0; i < heap->arena_count; i++)
		if (heap->arenas[i].address >= start && heap->arenas[i].address < end)
			return true;
	return heap->home >= start && heap->home < end;
}

static bool glibc_is_used(const struct heap *heap)
{
	return ((const struct glibc_heap *)heap)->arena_count > 0;
}

const struct allocator allocator_glibc = {
	.name = "glibc",
	.summary = "malloc of the GNU C library, 2.12 and later",
	.alignment = ALIGNMENT,
	.narrow = true,
	.heap_size = sizeof(struct glibc_heap),
	.sort_free = glibc_find_unsorted,
	.spare = glibc_visit_spare,
	FILL_SLOTS(glibc, open, walk, stale_links, tell, arena_kinds, free_kinds, free_kind, extent,
		   size_fits, keeps, holds, reserved, lives_in, is_used, visit_structure, wrote,
		   close),
};
