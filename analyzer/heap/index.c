#include "analyzer/heap/index.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/heap/index_parts.h"

#include <assert.h>
#include <string.h>

DEFINE_COMPARE(compare_regions, struct heap_region, ASCENDING(start))

static bool in_order(const struct block_sink *sink)
{
	const struct heap_region *regions = sink->regions.items;

	for (size_t i = 1; i < sink->regions.count; i++)
		if (regions[i].start < regions[i - 1].start)
			return false;
	return true;
}

DEFINE_COMPARE(compare_large, struct large_size, ASCENDING(id))

/*
 * Bring the regions in order of address. Walkers that report them in that order, as they should,
 * spare this copy.
 */
static struct error *sort_sink(struct block_sink *sink)
{
	_cleanup_(block_sink_destroy) struct block_sink *sorted = NULL;
	struct heap_region *regions = sink->regions.items;

	if (in_order(sink))
		return NULL;
	SORT(regions, sink->regions.count, compare_regions);
	TRY(block_sink_create(sink->account, &sorted));
	for (size_t i = 0; i < sink->regions.count; i++) {
		TRY(block_sink_move_region(sink, sorted, &regions[i]));
		block_sink_forget(sink, &regions[i]);
	}
	block_sink_replace(sink, sorted);
	return NULL;
}

/* Claim the regions, too, and join the claims that touch. */
static struct error *join_claims(struct block_sink *sink)
{
	for (size_t i = 0; i < sink->regions.count; i++)
		TRY(block_sink_claim_region(sink, i));
	sink->claims.count = memory_ranges_join(sink->claims.items, sink->claims.count);
	return NULL;
}

/* Lines cover the region up to the start of its last allocation; a single one needs none. */
static size_t count_lines(const struct allocation_index *index, const struct heap_region *region)
{
	if (region->count < 2)
		return 0;
	return index->extents[region->first + region->count - 1].start / LINE_BITS + 1;
}

static struct error *reserve_lines(struct allocation_index *index)
{
	struct region_layout *layouts;
	size_t total = 0;

	TRY(array_resize(&index->layouts, index->region_count + 1));
	layouts = index->layouts.items;
	for (size_t i = 0; i < index->region_count; i++) {
		size_t count = count_lines(index, &index->regions[i]);

		layouts[i] = (struct region_layout){ total, count, GAPS_VARY };
		total += count;
	}
	/* One more: see line_next_bit(). */
	return array_resize(&index->lines, total + 1);
}

/* Mark the lines from the one of the offset on up to that of end. */
static void mark_uneven(struct line *lines, unsigned int shift, uint64_t offset, uint64_t end)
{
	uint64_t last = ((end - 1) >> shift) / LINE_BITS;

	for (uint64_t i = (offset >> shift) / LINE_BITS; i <= last; i++)
		lines[i].sums |= LINE_UNEVEN;
}

/* Mark the lines where more than the gap is between two allocations. */
static void find_uneven(const struct allocation_index *index, const struct heap_region *region,
			struct line *lines, uint64_t gap)
{
	const struct extent *extents = index->extents + region->first;

	for (size_t i = 1; i < region->count; i++) {
		uint64_t end =
			((uint64_t)extents[i - 1].start << region->shift) + extents[i - 1].size;
		uint64_t next = (uint64_t)extents[i].start << region->shift;

		if (next - end != gap)
			mark_uneven(lines, region->shift, end, next);
	}
}

/* Set the bits of the region's allocations; returns the region's gap. */
static unsigned int mark_starts(const struct allocation_index *index,
				const struct heap_region *region, struct line *lines)
{
	const struct extent *extents = index->extents + region->first;
	uint64_t end = 0, least = UINT64_MAX, most = 0;

	for (size_t i = 0; i < region->count; i++) {
		uint32_t start = extents[i].start, bit = start % LINE_BITS;
		uint64_t offset = (uint64_t)start << region->shift, between = offset - end;

		lines[start / LINE_BITS].bits[bit / 64] |= UINT64_C(1) << (bit % 64);
		/* It may be shorter. */
		if (i > 0 && between < least && extents[i - 1].size != LARGE_SIZE)
			least = between;
		if (i > 0 && between > most)
			most = between;
		end = offset + extents[i].size;
	}
	if (least > UINT64_C(1) << region->shift)
		return GAPS_VARY;
	if (most > least)
		find_uneven(index, region, lines, least);
	return (unsigned int)least;
}

/* Add up the bits of the line; returns how many there are up to its end. */
static uint64_t sum_line(struct line *line, uint64_t before)
{
	uint64_t count = 0;

	line->sums = (line->sums & LINE_UNEVEN) | before;
	for (unsigned int i = 0; i < LINE_WORDS; i++) {
		if (i > 0 && i % 2 == 0)
			line->sums |= count << (32 + SUM_BITS * (i / 2 - 1));
		count += bits_count(line->bits[i]);
	}
	return before + count;
}

static void fill_lines(const struct allocation_index *index, size_t number)
{
	const struct heap_region *region = &index->regions[number];
	struct region_layout *layout = index->layouts.items + number;
	struct line *lines = index->lines.items;
	uint64_t before = 0;

	if (layout->lines == 0)
		return;
	lines += layout->first_line;
	layout->gap = mark_starts(index, region, lines);
	for (size_t i = 0; i < layout->lines; i++)
		before = sum_line(&lines[i], before);
}

/*
 * Put the bounds around what lies on either side of the widest gap; the least shift of all. Words
 * that are addresses a little before a region are within: to a runtime they may be references.
 * Returns the first region behind the gap; 0: there is none.
 */
static size_t find_bounds(struct allocation_index *index)
{
	enum { LEAST_GAP = 1 << 20, BEFORE = 64 };
	const struct heap_region *regions = index->regions;
	size_t count = index->region_count, split = 0;
	uint64_t widest = LEAST_GAP;

	if (count == 0)
		return 0;
	index->least_shift = regions[0].shift;
	for (size_t i = 1; i < count; i++) {
		uint64_t gap = regions[i].start - regions[i - 1].end;

		if (gap > widest) {
			widest = gap;
			split = i;
		}
		if (regions[i].shift < index->least_shift)
			index->least_shift = regions[i].shift;
	}
	index->bounds.start[0] = regions[0].start;
	index->bounds.size[0] =
		(split ? regions[split - 1].end : regions[count - 1].end) - regions[0].start;
	index->bounds.start[1] = regions[split].start;
	index->bounds.size[1] = regions[count - 1].end - regions[split].start;
	for (int i = 0; i < 2; i++) {
		uint64_t before = index->bounds.start[i] < BEFORE ? 0 : BEFORE;

		index->bounds.start[i] -= before;
		index->bounds.size[i] += before;
	}
	return split;
}

/* Build the guide of the bounds around the regions [first, end). */
static struct error *make_guide(struct allocation_index *index, int bounds, size_t first,
				size_t end)
{
	struct region_guide *guide = &index->guides[bounds];
	const struct heap_region *regions = index->regions;
	uint64_t start = index->bounds.start[bounds], size = index->bounds.size[bounds];
	size_t region = first;

	while (size >> guide->shift > end - first)
		guide->shift++;
	TRY(array_resize(&guide->last, (size >> guide->shift) + 2));
	for (size_t i = 0; i < guide->last.count; i++) {
		while (region + 1 < end &&
		       regions[region + 1].start - start <= (uint64_t)i << guide->shift)
			region++;
		guide->last.items[i] = (uint32_t)region;
	}
	return NULL;
}

/* Take over the sink's bits, giving back what was reserved too much. */
static struct error *take_bits(struct memory *memory, size_t count, struct bitmap *ret)
{
	TRY(memory_resize(memory, (count / 64 + 1) * sizeof(uint64_t)));
	*ret = (struct bitmap){ memory->bytes, count, *memory };
	memory->bytes = NULL;
	memory->size = 0;
	return NULL;
}

static struct error *take_traits(struct allocation_index *index)
{
	for (size_t i = 0; i < BLOCK_TRAITS; i++)
		if (index->sink->traits[i].bytes)
			TRY(take_bits(&index->sink->traits[i], index->count, &index->traits[i]));
	return NULL;
}

static struct error *build(struct allocation_index *index)
{
	struct block_sink *sink = index->sink;
	size_t split;

	TRY(sort_sink(sink));
	TRY(join_claims(sink));
	TRY(memory_resize(&sink->extents, sink->count * sizeof(struct extent)));
	TRY(take_bits(&sink->used, sink->count, &index->used));
	TRY(take_bits(&sink->cached, sink->count, &index->cached));
	SORT(sink->large.items, sink->large.count, compare_large);
	index->extents = sink->extents.bytes;
	index->count = sink->count;
	index->regions = sink->regions.items;
	index->region_count = sink->regions.count;
	TRY(take_traits(index));
	TRY(reserve_lines(index));
	for (size_t i = 0; i < index->region_count; i++)
		fill_lines(index, i);
	split = find_bounds(index);
	TRY(make_guide(index, 0, 0, split ? split : index->region_count));
	return split ? make_guide(index, 1, split, index->region_count) : NULL;
}

struct error *allocation_index_create(struct block_sink *sink, struct allocation_index **ret)
{
	_cleanup_(allocation_index_destroy) struct allocation_index *index =
		calloc(1, sizeof(*index));

	TRY_MEMORY(index);
	arrays_use(sink->account, &index->lines, &index->layouts, &index->guides[0].last,
		   &index->guides[1].last);
	index->lookups_end = lookups_end_kind(1);
	if (!index->lookups_end)
		index->lookups_end = lookups_end_kind(0);
	TRY(block_sink_create(sink->account, &index->sink));
	/* The index owns what was in the sink; the caller keeps an empty one.
	 */
	struct block_sink empty = *index->sink;
	*index->sink = *sink;
	*sink = empty;
	TRY(build(index));
	*ret = take(index);
	return NULL;
}

void allocation_index_destroy(struct allocation_index *index)
{
	bitmap_deinit(&index->used);
	bitmap_deinit(&index->cached);
	for (size_t i = 0; i < BLOCK_TRAITS; i++)
		bitmap_deinit(&index->traits[i]);
	arrays_release(&index->lines, &index->layouts, &index->guides[0].last,
		       &index->guides[1].last);
	if (index->sink)
		block_sink_destroy(index->sink);
	free(index);
}

const struct block_sink *allocation_index_sink(const struct allocation_index *index)
{
	return index->sink;
}

size_t allocation_count(const struct allocation_index *index)
{
	return index->count;
}

/* The region that allocation id is in. */
static const struct heap_region *region_of(const struct allocation_index *index, allocation_id id)
{
	size_t low = LIST_ABOVE(index->regions, index->region_count, first, id);

	/* Regions without allocations share the first of the next one. */
	while (index->regions[low - 1].count == 0)
		low--;
	return &index->regions[low - 1];
}

uint64_t allocation_start(const struct allocation_index *index, allocation_id id)
{
	return extent_start(region_of(index, id), &index->extents[id]);
}

/* Not inlined, because nearly all are small. */
static __attribute__((noinline)) uint64_t large_size(const struct allocation_index *index,
						     allocation_id id)
{
	const struct large_size key = { .id = id };
	const struct large_size *large =
		bsearch(&key, index->sink->large.items, index->sink->large.count, sizeof(key),
			compare_large);

	assert(large);
	return large->size;
}

uint64_t allocation_size(const struct allocation_index *index, allocation_id id)
{
	uint32_t size = index->extents[id].size;

	return size != LARGE_SIZE ? size : large_size(index, id);
}

void allocation_fetch_size(const struct allocation_index *index, allocation_id id)
{
	__builtin_prefetch(&index->extents[id]);
}

struct memory_range allocation_range_near(const struct allocation_index *index, allocation_id id,
					  size_t *hint)
{
	const struct heap_region *region = &index->regions[*hint];
	uint64_t start;

	if (id - region->first >= region->count) {
		region = region_of(index, id);
		*hint = (size_t)(region - index->regions);
	}
	start = extent_start(region, &index->extents[id]);
	return (struct memory_range){ start, start + allocation_size(index, id) };
}

enum block_state allocation_state(const struct allocation_index *index, allocation_id id)
{
	return bitmap_get(&index->used, id)	? BLOCK_USED
	       : bitmap_get(&index->cached, id) ? BLOCK_CACHED
						: BLOCK_FREE;
}

uint64_t allocation_alignment(const struct allocation_index *index)
{
	return UINT64_C(1) << index->least_shift;
}

struct heap_bounds allocation_bounds(const struct allocation_index *index)
{
	return index->bounds;
}

struct memory_range allocation_range_around(const struct allocation_index *index, allocation_id id,
					    uint64_t address)
{
	size_t hint = find_region(index, address & ~index->bounds.tag_bits);

	return allocation_range_near(index, id, &hint);
}

allocation_id allocation_find(const struct allocation_index *index, uint64_t address)
{
	allocation_id id;
	size_t hint = 0;

	if (!heap_bounds_hold(&index->bounds, address))
		return NO_ALLOCATION;
	allocation_find_many(index, &address, 1, &hint, &id);
	return id;
}

allocation_id allocation_used_at(const struct allocation_index *index, uint64_t address)
{
	allocation_id id = allocation_find(index, address);

	return id != NO_ALLOCATION && bitmap_get(&index->used, id) &&
			       allocation_start(index, id) == address
		       ? id
		       : NO_ALLOCATION;
}

const struct bitmap *allocation_used(const struct allocation_index *index)
{
	return &index->used;
}

const struct bitmap *allocation_cached(const struct allocation_index *index)
{
	return &index->cached;
}

const struct bitmap *allocation_having(const struct allocation_index *index, enum block_trait trait)
{
	for (size_t i = 0; i < BLOCK_TRAITS; i++)
		if (trait == trait_mask(i) && index->traits[i].words)
			return &index->traits[i];
	return NULL;
}

void allocation_set_tag_bits(struct allocation_index *index, uint64_t tag_bits)
{
	index->bounds.tag_bits = tag_bits;
}

struct error *allocation_add_trait(struct allocation_index *index, enum block_trait trait,
				   const struct bitmap *set, struct memory_account *account)
{
	const struct bitmap *known = allocation_having(index, trait);
	struct bitmap *having = &index->traits[__builtin_ctz(trait)], all = { 0 };

	TRY(bitmap_init_minus(&all, set, NULL, account));
	if (known)
		bitmap_or(&all, known);
	/* The old one may be in a side file. */
	bitmap_deinit(having);
	*having = all;
	return NULL;
}

void allocation_set_stale_links(struct allocation_index *index, stale_link_test test,
				const void *data, bool lead_anywhere)
{
	index->stale_links = test;
	index->stale_link_data = data;
	index->links_lead_anywhere = lead_anywhere;
}

bool allocation_stale_links_lead_anywhere(const struct allocation_index *index)
{
	return index->links_lead_anywhere;
}

unsigned int allocation_stale_links(const struct allocation_index *index, uint64_t start,
				    const uint64_t words[4])
{
	if (!index->stale_links)
		return 0;
	return index->stale_links(index->stale_link_data, index, start, words);
}

void allocation_set_rounding(struct allocation_index *index, rounding_test test, const void *data)
{
	index->rounding = test;
	index->rounding_data = data;
}

bool allocation_fits(const struct allocation_index *index, struct memory_range range,
		     uint64_t wanted, bool exactly)
{
	uint64_t size = range.end - range.start;

	if (wanted > size)
		return false;
	return index->rounding ? index->rounding(index->rounding_data, range, wanted, exactly)
			       : rounds_like_malloc(size, wanted);
}

size_t allocation_held_count(const struct allocation_index *index)
{
	return index->sink->held.count;
}

allocation_id allocation_held(const struct allocation_index *index, size_t number)
{
	const uint64_t *held = index->sink->held.items;

	return allocation_find(index, held[number]);
}

size_t heap_region_count(const struct allocation_index *index)
{
	return index->region_count;
}

const struct heap_region *heap_region(const struct allocation_index *index, size_t number)
{
	return &index->regions[number];
}

const struct heap_region *heap_region_find(const struct allocation_index *index, uint64_t address)
{
	size_t number = find_region(index, address);

	if (index->region_count == 0 || !region_holds(&index->regions[number], address))
		return NULL;
	return &index->regions[number];
}

size_t heap_claim_count(const struct allocation_index *index)
{
	return index->sink->claims.count;
}

struct memory_range heap_claim(const struct allocation_index *index, size_t number)
{
	const struct memory_range *claims = index->sink->claims.items;

	return claims[number];
}

size_t heap_claim_above(const struct allocation_index *index, uint64_t address)
{
	const struct memory_range *claims = index->sink->claims.items;

	return LIST_ABOVE(claims, heap_claim_count(index), end, address);
}
