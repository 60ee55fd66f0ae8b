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
	size_t above = LIST_ABOVE(je->extents.items, je->extents.count, start, address);

	return above > 0 && address < extent_end(&je->extents.items[above - 1])
		       ? &je->extents.items[above - 1]
		       : NULL;
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

bool jemalloc_has_address(const struct address_list *list, uint64_t address)
{
	return list->count > 0 &&
	       bsearch(&address, list->items, list->count, sizeof(address), compare_u64);
}

struct adding {
	struct jemalloc *je;
	const struct heap_context *context;
	struct block_sink *sink;
	struct view view;
};

static bool is_free_bit(const uint64_t *words, uint64_t number)
{
	return words[number / 64] >> number % 64 & 1;
}

/* Blocks that hold the stacks of caches are claimed instead. */
static struct error *add_region(struct adding *adding, uint64_t start, uint64_t bytes, bool is_free)
{
	const struct jemalloc *je = adding->je;
	enum block_state state = is_free ? BLOCK_FREE : BLOCK_USED;

	if (!is_free && jemalloc_has_address(&je->stacks, start))
		return NULL;
	if (!is_free && jemalloc_has_address(&je->cached, start))
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
		je->bitmaps.stated = stated;
		je->bitmaps.found = found;
	}
	note_damage(&je->bitmaps, slab->start);
}

/* Whether the sorted list has an address of the extent. */
static bool has_any(const struct address_list *list, const struct jemalloc_extent *extent)
{
	size_t above = BISECT(i, 0, list->count, list->items[i] < extent->start);

	return above < list->count && list->items[above] < extent_end(extent);
}

/* Add the regions of a slab all at once, as its bitmap says. */
static struct error *add_regions(struct adding *adding, const struct jemalloc_extent *slab,
				 uint64_t count, const uint64_t *free_bits, uint64_t base)
{
	uint64_t bytes = class_bytes(&adding->je->layout, slab), first = slab->start - base;
	unsigned int shift = (unsigned int)__builtin_ctz(ALIGNMENT);

	for (uint64_t i = 0; i < count; i += BLOCK_BATCH) {
		struct extent extents[BLOCK_BATCH];
		uint64_t used[BLOCK_BATCH / 64];
		uint64_t batch = count - i < BLOCK_BATCH ? count - i : BLOCK_BATCH;

		for (uint64_t j = 0; j < batch; j++)
			extents[j] =
				(struct extent){ (uint32_t)((first + (i + j) * bytes) >> shift),
						 (uint32_t)bytes };
		for (uint64_t j = 0; j * 64 < batch; j++)
			used[j] = ~free_bits[i / 64 + j];
		TRY(block_sink_add_many(adding->sink, extents, used, batch));
	}
	return NULL;
}

static struct error *add_slab(struct adding *adding, const struct jemalloc_extent *slab)
{
	struct jemalloc *je = adding->je;
	uint64_t words[MOST_BITMAP_WORDS] = { 0 }, base;
	uint64_t count = region_count(&je->layout, slab), bytes = class_bytes(&je->layout, slab);

	if (jemalloc_read_bitmap(&adding->view, &je->layout, slab, count, words))
		note_bitmap(je, slab, words, count);
	else
		note_damage(&je->absent, slab->start);
	if (!has_any(&je->cached, slab) && !has_any(&je->stacks, slab) &&
	    block_sink_base(adding->sink, slab->start, &base))
		return add_regions(adding, slab, count, words, base);
	for (uint64_t i = 0; i < count; i++)
		TRY(add_region(adding, slab->start + i * bytes, bytes, is_free_bit(words, i)));
	return NULL;
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

/* Extents of an arena in a row are one region. */
static uint64_t find_region_end(const struct jemalloc *je, size_t first)
{
	const struct jemalloc_extent *extents = je->extents.items;
	uint64_t end = extent_end(&extents[first]);

	for (size_t i = first + 1; i < je->extents.count && extents[i].start == end &&
				   arena_index(&extents[i]) == arena_index(&extents[first]);
	     i++)
		end = extent_end(&extents[i]);
	return end;
}

struct error *jemalloc_add_blocks(struct jemalloc *je, const struct heap_context *context,
				  arena_number first, struct block_sink *sink)
{
	struct adding adding = { je, context, sink, { context->image } };
	uint64_t end = 0;

	for (size_t i = 0; i < je->extents.count; i++) {
		const struct jemalloc_extent *extent = &je->extents.items[i];

		if (extent->start >= end) {
			end = find_region_end(je, i);
			TRY(block_sink_region(sink, extent->start, end,
					      first + je->arena_numbers[arena_index(extent)]));
		}
		TRY(add_extent(&adding, extent));
		if (i % PROGRESS_STEP == 0)
			TRY(progress_check(context->progress, PROGRESS_STEP * page_size(je)));
	}
	return NULL;
}
