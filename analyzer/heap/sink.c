#include "analyzer/heap/sink.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"

#include <assert.h>
#include <string.h>

static const uint64_t WIDE_GAP = UINT64_C(16) << 20;

/* The largest offset that the extents of a region can have. */
static uint64_t reach_of(const struct heap_region *region)
{
	return UINT64_C(1) << (32 + region->shift);
}

struct error *block_sink_create(struct memory_account *account, struct block_sink **ret)
{
	struct block_sink *sink = calloc(1, sizeof(*sink));

	TRY_MEMORY(sink);
	sink->account = account;
	sink->shift = USUAL_SHIFT;
	sink->regions.memory.account = account;
	sink->extents.account = account;
	sink->used.account = account;
	sink->cached.account = account;
	for (size_t i = 0; i < BLOCK_TRAITS; i++)
		sink->traits[i].account = account;
	arrays_use(account, &sink->large, &sink->claims, &sink->held, &sink->order);
	*ret = sink;
	return NULL;
}

void block_sink_destroy(struct block_sink *sink)
{
	array_release(&sink->regions);
	memory_release(&sink->extents);
	memory_release(&sink->used);
	memory_release(&sink->cached);
	for (size_t i = 0; i < BLOCK_TRAITS; i++)
		memory_release(&sink->traits[i]);
	arrays_release(&sink->large, &sink->claims, &sink->held, &sink->order);
	free(sink);
}

void block_sink_align(struct block_sink *sink, unsigned int alignment)
{
	sink->shift = (unsigned int)__builtin_ctz(alignment);
	assert(alignment == 1U << sink->shift && sink->shift >= LEAST_SHIFT &&
	       sink->shift <= MOST_SHIFT);
}

/* The dump says what cannot be: leave it out. */
static struct error *refuse(struct block_sink *sink, uint64_t start)
{
	heap_damage_note(&sink->refused, start);
	return NULL;
}

struct error *block_sink_region(struct block_sink *sink, uint64_t start, uint64_t end,
				arena_number arena)
{
	struct heap_region region = {
		.start = start,
		.end = end,
		.first = (allocation_id)sink->count,
		.arena = arena,
		.shift = sink->shift,
	};

	sink->order.count = 0;
	sink->refuses = start % (1U << sink->shift) != 0 || start >= end;
	if (sink->refuses)
		return refuse(sink, start);
	return array_append(&sink->regions, region);
}

static struct heap_region *last_region(const struct block_sink *sink)
{
	return &sink->regions.items[sink->regions.count - 1];
}

/* True if what begins there is in the arena's last region, or where that ends. */
static bool goes_on(const struct block_sink *sink, uint64_t start, arena_number arena)
{
	const struct heap_region *last;

	if (sink->regions.count == 0 || sink->refuses)
		return false;
	last = last_region(sink);
	return last->arena == arena && last->shift == sink->shift && start >= last->start &&
	       start <= last->end;
}

struct error *block_sink_stretch(struct block_sink *sink, uint64_t start, uint64_t end,
				 arena_number arena)
{
	struct heap_region *last;

	if (!goes_on(sink, start, arena))
		return block_sink_region(sink, start, end, arena);
	last = last_region(sink);
	if (start == last->end)
		last->end = MAX(start, end);
	return NULL;
}

/* Room for so many more extents and their bits. */
static struct error *reserve(struct block_sink *sink, size_t more)
{
	size_t words = (sink->count + more + 63) / 64;

	if (sink->count + more >= NO_ALLOCATION)
		return error_create(ERROR_NOT_SUPPORTED, "more than 4,294,967,293 allocations");
	TRY(memory_reserve(&sink->extents, (sink->count + more) * sizeof(struct extent)));
	TRY(memory_reserve(&sink->used, words * sizeof(uint64_t)));
	return memory_reserve(&sink->cached, words * sizeof(uint64_t));
}

static struct error *add_large(struct block_sink *sink, size_t number, uint64_t size)
{
	return array_append(&sink->large, (struct large_size){ (allocation_id)number, size });
}

static void set_state(struct block_sink *sink, size_t number, enum block_state state)
{
	uint64_t *used = sink->used.bytes, *cached = sink->cached.bytes;
	uint64_t bit = UINT64_C(1) << (number % 64);

	used[number / 64] &= ~bit;
	cached[number / 64] &= ~bit;
	if (state == BLOCK_USED)
		used[number / 64] |= bit;
	else if (state == BLOCK_CACHED)
		cached[number / 64] |= bit;
}

/* A trait that no block has takes no memory. */
static struct error *set_traits(struct block_sink *sink, size_t number, unsigned int traits)
{
	for (size_t i = 0; i < BLOCK_TRAITS; i++) {
		struct memory *bits = &sink->traits[i];

		if (!(traits & trait_mask(i)))
			continue;
		TRY(memory_reserve(bits, (number / 64 + 1) * sizeof(uint64_t)));
		((uint64_t *)bits->bytes)[number / 64] |= UINT64_C(1) << (number % 64);
	}
	return NULL;
}

/*
 * True if a new region must begin at start: an extent cannot express its offset from here, or the
 * gap is so large that bits for it would waste memory.
 */
static bool needs_region(const struct block_sink *sink, const struct heap_region *region,
			 uint64_t start)
{
	const struct extent *extents = sink->extents.bytes;
	uint64_t distance = start - region->start;

	if (distance >= reach_of(region))
		return true;
	return region->count > 0 &&
	       start - extent_start(region, &extents[sink->count - 1]) > WIDE_GAP;
}

/* The end of the last block of the latest region; if it has none, its start. */
static uint64_t end_of_last(const struct block_sink *sink)
{
	const struct heap_region *region = last_region(sink);
	const struct extent *last;
	uint64_t size;

	if (region->count == 0)
		return region->start;
	last = (const struct extent *)sink->extents.bytes + sink->count - 1;
	size = last->size == LARGE_SIZE ? sink->large.items[sink->large.count - 1].size
					: last->size;
	return extent_start(region, last) + (size ? size : 1);
}

/* True if count blocks of size bytes from start on lie behind all others, within the region. */
static bool fits(const struct block_sink *sink, uint64_t start, uint64_t size, size_t count)
{
	const struct heap_region *region;

	if (sink->refuses || sink->regions.count == 0)
		return false;
	region = last_region(sink);
	return start % (1U << region->shift) == 0 && start >= end_of_last(sink) &&
	       start < region->end && (size == 0 || count <= (region->end - start) / size);
}

/* Begin a region with the block at start if it cannot go without. */
static struct error *split_region(struct block_sink *sink, uint64_t start)
{
	struct heap_region *region = last_region(sink);
	uint64_t end = region->end;

	if (!needs_region(sink, region, start))
		return NULL;
	region->end = start;
	return block_sink_region(sink, start, end, region->arena);
}

struct error *block_sink_add(struct block_sink *sink, struct block block)
{
	struct heap_region *region;
	struct extent *extents;

	if (!fits(sink, block.start, block.size, 1))
		return refuse(sink, block.start);
	TRY(reserve(sink, 1));
	TRY(split_region(sink, block.start));
	region = last_region(sink);
	if (block.size >= LARGE_SIZE)
		TRY(add_large(sink, sink->count, block.size));
	if (block.traits)
		TRY(set_traits(sink, sink->count, block.traits));
	extents = sink->extents.bytes;
	extents[sink->count].start = (uint32_t)((block.start - region->start) >> region->shift);
	extents[sink->count].size = block.size >= LARGE_SIZE ? LARGE_SIZE : (uint32_t)block.size;
	set_state(sink, sink->count, block.state);
	sink->count++;
	region->count++;
	return NULL;
}

bool block_sink_base(const struct block_sink *sink, uint64_t start, uint64_t *ret)
{
	const struct heap_region *region = last_region(sink);

	/* Nor does an extent of the blocks that follow need a region. */
	if (needs_region(sink, region, start) ||
	    start - region->start >= reach_of(region) - BLOCK_BATCH * WIDE_GAP)
		return false;
	*ret = region->start;
	return true;
}

/* Copy count bits, from number from on to number to; those are 0 yet. */
static void copy_bits(uint64_t *to, size_t to_bit, const uint64_t *from, size_t from_bit,
		      size_t count)
{
	while (count > 0) {
		size_t room = 64 - to_bit % 64, left = 64 - from_bit % 64;
		size_t step = room < left ? room : left;
		uint64_t bits = from[from_bit / 64] >> (from_bit % 64);

		step = MIN(step, count);
		if (step < 64)
			bits &= (UINT64_C(1) << step) - 1;
		to[to_bit / 64] |= bits << (to_bit % 64);
		to_bit += step;
		from_bit += step;
		count -= step;
	}
}

struct error *block_sink_add_many(struct block_sink *sink, const struct extent *extents,
				  const uint64_t *used, size_t count)
{
	TRY(reserve(sink, count));
	memcpy((struct extent *)sink->extents.bytes + sink->count, extents,
	       count * sizeof(*extents));
	copy_bits(sink->used.bytes, sink->count, used, 0, count);
	sink->count += count;
	last_region(sink)->count += (uint32_t)count;
	return NULL;
}

static bool get_bit(const uint64_t *bits, size_t number)
{
	return bits && bits[number / 64] >> (number % 64) & 1;
}

static struct error *add_one_by_one(struct block_sink *sink, uint64_t start, uint64_t size,
				    const uint64_t *used, const uint64_t *cached, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct block block = { start + i * size, size, BLOCK_FREE };

		if (get_bit(used, i))
			block.state = BLOCK_USED;
		else if (get_bit(cached, i))
			block.state = BLOCK_CACHED;
		TRY(block_sink_add(sink, block));
	}
	return NULL;
}

struct error *block_sink_add_row(struct block_sink *sink, uint64_t start, uint64_t size,
				 const uint64_t *used, const uint64_t *cached, size_t count)
{
	struct heap_region *region;
	struct extent *extents;

	if (!fits(sink, start, size, count) || size % (1U << last_region(sink)->shift) != 0)
		return refuse(sink, start);
	TRY(reserve(sink, count));
	TRY(split_region(sink, start));
	region = last_region(sink);
	if (size > WIDE_GAP || start - region->start + size * count > reach_of(region))
		return add_one_by_one(sink, start, size, used, cached, count);
	extents = (struct extent *)sink->extents.bytes + sink->count;
	for (size_t i = 0; i < count; i++)
		extents[i] = (struct extent){ (uint32_t)((start - region->start + i * size) >>
							 region->shift),
					      (uint32_t)size };
	copy_bits(sink->used.bytes, sink->count, used, 0, count);
	if (cached)
		copy_bits(sink->cached.bytes, sink->count, cached, 0, count);
	sink->count += count;
	region->count += (uint32_t)count;
	return NULL;
}

static void clear_bits(struct memory *bitmap, size_t count)
{
	if (count > 0)
		memset(bitmap->bytes, 0, (count + 63) / 64 * sizeof(uint64_t));
}

void block_sink_clear(struct block_sink *sink)
{
	clear_bits(&sink->used, sink->count);
	clear_bits(&sink->cached, sink->count);
	sink->count = 0;
	sink->regions.count = 0;
	sink->large.count = 0;
	sink->refuses = false;
	sink->refused.count = 0;
}

void block_sink_cut(struct block_sink *sink, uint64_t end)
{
	if (!sink->refuses && end >= last_region(sink)->start)
		last_region(sink)->end = end;
}

void block_sink_protect(struct block_sink *sink, const struct memory_range *ranges, size_t count)
{
	sink->protected = ranges;
	sink->protected_count = count;
}

/* True if a block of the region overlaps the range. */
static bool has_block(const struct block_sink *sink, const struct heap_region *region,
		      const struct memory_range *range)
{
	uint64_t last = MIN(range->end, region->end) - 1;
	size_t number = block_sink_number_below(sink, region, last);
	struct block block;

	if (number == sink->count)
		return false;
	block = block_sink_get(sink, region, number);
	return block.start > range->start || block.size > range->start - block.start;
}

/* Claim [start, end) around what is protected, if it is in no block of the region, if any. */
static struct error *claim_around(struct block_sink *sink, uint64_t start, uint64_t end,
				  const struct heap_region *region)
{
	const struct memory_range *protected = sink->protected;
	size_t count = sink->protected_count, i = LIST_ABOVE(protected, count, end, start);

	for (; i < count && protected[i].start < end; i++) {
		if (region && has_block(sink, region, &protected[i]))
			continue;
		if (protected[i].start > start)
			TRY(array_append(&sink->claims,
					 (struct memory_range){ start, protected[i].start }));
		start = protected[i].end;
	}
	return start < end ? array_append(&sink->claims, (struct memory_range){ start, end })
			   : NULL;
}

struct error *block_sink_claim(struct block_sink *sink, uint64_t start, uint64_t end)
{
	return start <= end ? claim_around(sink, start, end, NULL) : refuse(sink, start);
}

struct error *block_sink_claim_region(struct block_sink *sink, size_t number)
{
	struct heap_region region = sink->regions.items[number];

	return claim_around(sink, region.start, region.end, &region);
}

enum sink_place block_sink_place(const struct block_sink *sink, uint64_t start, uint64_t end,
				 struct block *ret)
{
	const struct region_place *places = sink->order.items;
	size_t above = LIST_ABOVE(places, sink->order.count, start, end - 1), number;
	const struct heap_region *region;

	if (above == 0 || places[above - 1].reach <= start)
		return SINK_APART;
	region = &sink->regions.items[places[above - 1].number];
	if (region->start > start || region->end < end)
		return SINK_ACROSS;
	number = block_sink_number_below(sink, region, start);
	if (number == sink->count)
		return SINK_ACROSS;
	*ret = block_sink_get(sink, region, number);
	return SINK_AROUND;
}

size_t block_sink_number_below(const struct block_sink *sink, const struct heap_region *region,
			       uint64_t address)
{
	const struct extent *extents = sink->extents.bytes;
	uint64_t start = (address - region->start) >> region->shift;
	size_t above =
		BISECT(i, region->first, region->first + region->count, extents[i].start <= start);

	return above > region->first ? above - 1 : sink->count;
}

static uint64_t start_of(const struct block_sink *sink, const struct heap_region *region,
			 size_t number)
{
	return extent_start(region, (const struct extent *)sink->extents.bytes + number);
}

static uint64_t size_of(const struct block_sink *sink, size_t number)
{
	const struct extent *extents = sink->extents.bytes;
	const struct large_size *large = sink->large.items;

	for (size_t i = 0; extents[number].size == LARGE_SIZE && i < sink->large.count; i++)
		if (large[i].id == number)
			return large[i].size;
	return extents[number].size;
}

DEFINE_COMPARE(compare_places, struct region_place, ASCENDING(start))

struct error *block_sink_order(struct block_sink *sink)
{
	const struct heap_region *regions = sink->regions.items;
	size_t count = sink->regions.count;
	struct region_place *places;
	uint64_t reach = 0;

	TRY(array_reserve(&sink->order, count));
	if (count == 0)
		return NULL;
	places = sink->order.items;
	for (size_t i = 0; i < count; i++)
		places[i] = (struct region_place){ regions[i].start, 0, i };
	SORT(places, count, compare_places);
	for (size_t i = 0; i < count; i++) {
		const struct heap_region *region = &regions[places[i].number];

		if (region->end > reach)
			reach = region->end;
		places[i].reach = reach;
	}
	sink->order.count = count;
	return NULL;
}

/* The block that starts there, if the region has it; else sink->count. */
static size_t find_start_in(const struct block_sink *sink, size_t region, uint64_t address)
{
	const struct heap_region *regions = sink->regions.items;
	size_t number;

	if (address < regions[region].start || address >= regions[region].end)
		return sink->count;
	number = block_sink_number_below(sink, &regions[region], address);
	return number != sink->count && start_of(sink, &regions[region], number) == address
		       ? number
		       : sink->count;
}

/* The first region that has a block that starts there, or region_count. */
static size_t find_ordered(const struct block_sink *sink, uint64_t address)
{
	const struct region_place *places = sink->order.items;
	size_t i = LIST_ABOVE(places, sink->order.count, start, address);
	size_t first = sink->regions.count;

	for (; i > 0 && places[i - 1].reach > address; i--)
		if (places[i - 1].number < first &&
		    find_start_in(sink, places[i - 1].number, address) != sink->count)
			first = places[i - 1].number;
	return first;
}

static size_t find_one_by_one(const struct block_sink *sink, uint64_t address)
{
	size_t region = 0;

	while (region < sink->regions.count && find_start_in(sink, region, address) == sink->count)
		region++;
	return region;
}

/* The number of the block that starts at address, or sink->count. */
static size_t find_start(const struct block_sink *sink, uint64_t address,
			 const struct heap_region **ret_region)
{
	const struct heap_region *regions = sink->regions.items;
	size_t region =
		sink->order.count ? find_ordered(sink, address) : find_one_by_one(sink, address);

	if (region == sink->regions.count)
		return sink->count;
	*ret_region = &regions[region];
	return find_start_in(sink, region, address);
}

bool block_sink_below(const struct block_sink *sink, uint64_t address, struct block *ret)
{
	const struct heap_region *regions = sink->regions.items;
	bool found = false;

	for (size_t i = 0; i < sink->regions.count; i++) {
		size_t number;
		uint64_t start;

		if (address <= regions[i].start)
			continue;
		number = block_sink_number_below(sink, &regions[i], address - 1);
		if (number == sink->count)
			continue;
		start = start_of(sink, &regions[i], number);
		if (found && start <= ret->start)
			continue;
		*ret = (struct block){ start, size_of(sink, number) };
		found = true;
	}
	return found;
}

struct error *block_sink_hold(struct block_sink *sink, uint64_t start)
{
	return array_append(&sink->held, start);
}

/* The bit of the number-th block; bits may end before it. */
static bool bit_of(const struct memory *bits, size_t number)
{
	return number / 64 < bits->size / sizeof(uint64_t) &&
	       ((const uint64_t *)bits->bytes)[number / 64] >> (number % 64) & 1;
}

struct block block_sink_get(const struct block_sink *sink, const struct heap_region *region,
			    size_t number)
{
	struct block block = {
		.start = start_of(sink, region, number),
		.size = size_of(sink, number),
		.state = bit_of(&sink->used, number)	 ? BLOCK_USED
			 : bit_of(&sink->cached, number) ? BLOCK_CACHED
							 : BLOCK_FREE,
	};

	for (size_t i = 0; i < BLOCK_TRAITS; i++)
		if (bit_of(&sink->traits[i], number))
			block.traits |= trait_mask(i);
	return block;
}

bool block_sink_find(const struct block_sink *sink, uint64_t start, struct block *ret)
{
	const struct heap_region *region;
	size_t number = find_start(sink, start, &region);

	if (number == sink->count)
		return false;
	*ret = block_sink_get(sink, region, number);
	return true;
}

/* Append the bits of count blocks, as far as from has any. */
static struct error *append_bits(struct memory *to, size_t to_bit, const struct memory *from,
				 size_t from_bit, size_t count)
{
	size_t bits = from->size / sizeof(uint64_t) * 64;

	if (from_bit >= bits || count == 0)
		return NULL;
	count = MIN(count, bits - from_bit);
	TRY(memory_reserve(to, ((to_bit + count) / 64 + 1) * sizeof(uint64_t)));
	copy_bits(to->bytes, to_bit, from->bytes, from_bit, count);
	return NULL;
}

static struct error *append_large(struct block_sink *to, const struct block_sink *from,
				  size_t first, size_t count)
{
	for (size_t i = 0; i < from->large.count; i++) {
		struct large_size large = from->large.items[i];

		if (large.id - first < count)
			TRY(add_large(to, to->count + large.id - first, large.size));
	}
	return NULL;
}

/*
 * Append count blocks of another sink to the region begun last, whose start is so far from that of
 * theirs, in units of extents; or before it, modulo 2^32, where the region begins with their first.
 */
static struct error *append_blocks(struct block_sink *to, const struct block_sink *from,
				   size_t first, size_t count, uint32_t distance)
{
	const struct extent *extents = (const struct extent *)from->extents.bytes + first;
	struct extent *place;

	TRY(reserve(to, count));
	TRY(append_bits(&to->used, to->count, &from->used, first, count));
	TRY(append_bits(&to->cached, to->count, &from->cached, first, count));
	for (size_t i = 0; i < BLOCK_TRAITS; i++)
		TRY(append_bits(&to->traits[i], to->count, &from->traits[i], first, count));
	TRY(append_large(to, from, first, count));
	place = (struct extent *)to->extents.bytes + to->count;
	for (size_t i = 0; i < count; i++)
		place[i] = (struct extent){ extents[i].start + distance, extents[i].size };
	to->count += count;
	last_region(to)->count += (uint32_t)count;
	return NULL;
}

/* Rare: within the piece, extents come to their end. */
static struct error *join_one_by_one(struct block_sink *sink, const struct block_sink *piece)
{
	for (size_t i = 0; i < piece->count; i++)
		TRY(block_sink_add(sink, block_sink_get(piece, piece->regions.items, i)));
	return NULL;
}

struct error *block_sink_join(struct block_sink *sink, const struct block_sink *piece)
{
	const struct heap_region *region = piece->regions.items;
	uint64_t distance, last;

	assert(piece->regions.count == 1 && piece->count > 0 &&
	       region->shift == last_region(sink)->shift);
	TRY(split_region(sink, start_of(piece, region, 0)));
	distance = region->start - last_region(sink)->start;
	last = start_of(piece, region, piece->count - 1);
	if (last - last_region(sink)->start >= reach_of(region))
		return join_one_by_one(sink, piece);
	return append_blocks(sink, piece, 0, piece->count, (uint32_t)(distance >> region->shift));
}

struct error *block_sink_move_region(const struct block_sink *from, struct block_sink *to,
				     const struct heap_region *region)
{
	to->shift = region->shift;
	/* One that was cut at its start is left out: it has no blocks. */
	TRY(block_sink_region(to, region->start, region->end, region->arena));
	return to->refuses ? NULL : append_blocks(to, from, region->first, region->count, 0);
}

void block_sink_forget(struct block_sink *sink, const struct heap_region *region)
{
	enum { AT_ONCE = 1 << 20 };
	size_t start = region->first * sizeof(struct extent);
	bool follows = start == sink->forgotten_end;

	if (!follows || start - sink->forgotten >= AT_ONCE)
		sink->forgotten =
			memory_give_back(&sink->extents, sink->forgotten, sink->forgotten_end);
	if (!follows)
		sink->forgotten = start;
	sink->forgotten_end = start + region->count * sizeof(struct extent);
}

void block_sink_replace(struct block_sink *sink, struct block_sink *by)
{
	struct block_sink old = *sink;

	array_swap(&old.claims, &by->claims);
	array_swap(&old.held, &by->held);
	block_sink_protect(by, sink->protected, sink->protected_count);
	*sink = *by;
	*by = old;
}

bool block_sink_restate(struct block_sink *sink, uint64_t address, enum block_state state)
{
	const struct heap_region *region;
	size_t number = find_start(sink, address, &region);

	if (number == sink->count)
		return false;
	set_state(sink, number, state);
	return true;
}

void block_sink_visit_used(struct block_sink *sink, size_t first,
			   bool (*visit)(void *data, struct block block), void *data)
{
	const struct heap_region *regions = sink->regions.items;
	const struct extent *extents = sink->extents.bytes;
	const uint64_t *used = sink->used.bytes;

	for (size_t i = 0; i < sink->regions.count; i++) {
		size_t end = regions[i].first + regions[i].count;

		for (size_t j = regions[i].first; j < end; j++) {
			struct block block = {
				.start = extent_start(&regions[i], &extents[j]),
				.size = extents[j].size,
				.state = BLOCK_USED,
			};

			if (j < first || !(used[j / 64] >> (j % 64) & 1) ||
			    extents[j].size == LARGE_SIZE)
				continue;
			if (!visit(data, block))
				return;
		}
	}
}

size_t block_sink_count(const struct block_sink *sink)
{
	return sink->count;
}
