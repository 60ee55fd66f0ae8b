/*
 * Extents and their regions, as blocks.
 *
 * A bit of a slab's bitmap is set if the region is free. With larger pages it is a tree of bits, of
 * which the lowest level, the regions, comes first. Words behind those needed hold old data.
 */
#include "allocators/jemalloc/jemalloc.h"

#include "analyzer/base/sort.h"
#include "analyzer/heap/sink.h"

enum { PROGRESS_STEP = 4096 };

const struct jemalloc_extent *jemalloc_find_extent(const struct jemalloc *je, uint64_t address)
{
	const struct jemalloc_extent *extent =
		LIST_LAST(je->extents.items, je->extents.count, start, address);

	return extent && address < extent_end(extent) ? extent : NULL;
}

bool jemalloc_find_region(const struct jemalloc *je, uint64_t address, struct memory_range *ret,
			  unsigned int *ret_class)
{
	const struct jemalloc_extent *extent = jemalloc_find_extent(je, address);
	uint64_t bytes;

	if (!extent || !is_active(&je->layout, extent))
		return false;
	*ret_class = extent_class(&je->layout, extent);
	*ret = large_range(je, extent);
	if (is_slab(extent)) {
		bytes = class_bytes(&je->layout, extent);
		ret->start = extent->start + (address - extent->start) / bytes * bytes;
		ret->end = ret->start + bytes;
	}
	return address >= ret->start && address < ret->end;
}

struct adding {
	struct jemalloc *je;
	const struct heap_context *context;
	struct block_sink *sink;
	struct view view;
};

static bool has_bit(const uint64_t *words, uint64_t number)
{
	return words[number / 64] >> number % 64 & 1;
}

/* Blocks that hold the stacks of caches are claimed instead. */
static struct error *add_region(struct adding *adding, uint64_t start, uint64_t bytes, bool is_free)
{
	const struct jemalloc *je = adding->je;
	enum block_state state = is_free ? BLOCK_FREE : BLOCK_USED;

	if (!is_free && number_list_has(&je->stacks, start))
		return NULL;
	if (!is_free && number_list_has(&je->cached, start))
		state = BLOCK_CACHED;
	return block_sink_add(adding->sink, (struct block){ start, bytes, state });
}

static void note_bitmap(struct jemalloc *je, const struct jemalloc_extent *slab,
			const uint64_t *words, uint64_t count)
{
	uint32_t stated = stated_free(&je->geometry, &je->layout, slab), found;
	bool beyond;

	found = jemalloc_count_bits(words, count, &beyond);
	if (found == stated && !beyond)
		return;
	if (je->bitmaps.count == 0) {
		je->stated_free = stated;
		je->found_free = found;
	}
	heap_damage_note(&je->bitmaps, slab->start);
}

/* Move what caches have from the slab's used regions; false: they have none. */
static bool take_cached(const struct jemalloc *je, const struct jemalloc_extent *slab,
			uint64_t used[MOST_BITMAP_WORDS], uint64_t ret[MOST_BITMAP_WORDS])
{
	uint64_t bytes = class_bytes(&je->layout, slab);
	uint64_t end = slab->start + region_count(&je->layout, slab) * bytes;
	size_t first = number_list_below(&je->cached, slab->start), i = first;

	for (; i < je->cached.count && je->cached.items[i] < end; i++) {
		uint64_t number = (je->cached.items[i] - slab->start) / bytes;
		uint64_t bit = used[number / 64] & UINT64_C(1) << number % 64;

		used[number / 64] ^= bit;
		ret[number / 64] |= bit;
	}
	return i > first;
}

/* Add the regions of a slab, less those that hold stacks of caches. */
static struct error *add_regions(struct adding *adding, const struct jemalloc_extent *slab,
				 const uint64_t *used, const uint64_t *cached)
{
	const struct jemalloc *je = adding->je;
	uint64_t count = region_count(&je->layout, slab), bytes = class_bytes(&je->layout, slab);
	size_t next = number_list_below(&je->stacks, slab->start);

	if (next == je->stacks.count || je->stacks.items[next] >= extent_end(slab))
		return block_sink_add_row(adding->sink, slab->start, bytes, used, cached, count);
	for (uint64_t i = 0; i < count; i++)
		TRY(add_region(adding, slab->start + i * bytes, bytes,
			       !(has_bit(used, i) || (cached && has_bit(cached, i)))));
	return NULL;
}

static struct error *add_slab(struct adding *adding, const struct jemalloc_extent *slab)
{
	struct jemalloc *je = adding->je;
	uint64_t words[MOST_BITMAP_WORDS] = { 0 }, cached[MOST_BITMAP_WORDS] = { 0 };
	uint64_t count = region_count(&je->layout, slab);
	bool any_cached;

	if (jemalloc_read_bitmap(&adding->view, &je->layout, slab, count, words))
		note_bitmap(je, slab, words, count);
	else
		heap_damage_note(&je->absent, slab->start);
	for (uint64_t i = 0; i * 64 < count; i++)
		words[i] = ~words[i];
	any_cached = take_cached(je, slab, words, cached);
	return add_regions(adding, slab, words, any_cached ? cached : NULL);
}

static struct error *add_extent(struct adding *adding, const struct jemalloc_extent *extent)
{
	const struct jemalloc *je = adding->je;
	struct memory_range range;

	if (!is_active(&je->layout, extent))
		return block_sink_add(adding->sink,
				      (struct block){ extent->start, extent->bytes, BLOCK_FREE });
	if (is_slab(extent))
		return add_slab(adding, extent);
	range = large_range(je, extent);
	return add_region(adding, range.start, range.end - range.start, false);
}

struct error *jemalloc_add_blocks(struct jemalloc *je, const struct heap_context *context,
				  arena_number first, struct block_sink *sink)
{
	struct adding adding = { je, context, sink, { context->image } };

	for (size_t i = 0; i < je->extents.count; i++) {
		const struct jemalloc_extent *extent = &je->extents.items[i];

		TRY(block_sink_stretch(sink, extent->start, extent_end(extent),
				       first + je->arena_numbers[arena_index(extent)]));
		TRY(add_extent(&adding, extent));
		if (i % PROGRESS_STEP == 0)
			TRY(progress_check(context->progress, PROGRESS_STEP * page_size(je)));
	}
	return NULL;
}
