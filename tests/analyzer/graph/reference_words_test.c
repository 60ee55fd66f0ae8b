/*
 * The scan for references against a model that is too simple to be wrong: each word of each block,
 * looked for among all blocks. Blocks are of every size and state, in units of 16 bytes or 8,
 * regions have gaps that are even, or not, or but for some, and the dump lacks parts.
 */
#include "analyzer/graph/reference_words.h"

#include "tests/analyzer/world.h"
#include "tests/random.h"

enum { HEAPS = 16, HEAPS_OF_16 = 8, HEAP_SIZE = 0x8000, MOST_BLOCKS = 8192 };

struct model {
	struct block blocks[MOST_BLOCKS]; /* by address */
	size_t count;
};

static struct model model;

static uint64_t heap_start(size_t number)
{
	return 0x100000 + number * 0x10000;
}

/* Most are small; some are more than is read in vain. */
static uint64_t random_size(uint64_t unit)
{
	switch (random_below(16)) {
	case 0:
		return unit * random_below(2400 / unit);
	case 1:
		return 0;
	default:
		return unit * random_below(96 / unit);
	}
}

static void add_blocks(struct world *world, size_t heap)
{
	uint64_t start = heap_start(heap), end = start + HEAP_SIZE;
	unsigned int unit = heap < HEAPS_OF_16 ? 16 : 8;
	uint64_t gap = heap % 4 == 3 ? 0 : unit / 2 * (heap % 4);
	bool is_even = heap % 8 < 7, is_pointerless = random_below(3) == 0;
	unsigned int one_wide_in = heap % 8 < 4 ? 0 : is_even ? 40 : 4;

	block_sink_align(world->sink, unit);
	assert_no_error(block_sink_region(world->sink, start, end, 0));
	while (model.count < MOST_BLOCKS && end - start > 0x1000) {
		uint64_t size = random_size(unit) + 32 - gap;
		struct block block = {
			.start = start,
			.size = is_even ? size : size - random_below(12),
			.state = random_below(4) ? BLOCK_USED : BLOCK_FREE,
			.traits = is_pointerless && random_below(4) == 0 ? TRAIT_POINTERLESS : 0,
		};

		start += size + gap;
		if (one_wide_in > 0 && random_below(one_wide_in) == 0)
			start += unit * random_below(one_wide_in);
		model.blocks[model.count++] = block;
		world_add_block(world, block);
	}
}

/* All of the heap's memory, or with a seam, or without a part. */
static void add_memory(struct world *world, size_t heap)
{
	uint64_t start = heap_start(heap), seam = 16 * random_below(0x700);

	if (heap % 3 == 0) {
		core_add(&world->core, start, HEAP_SIZE, RIGHTS_RW);
		return;
	}
	core_add_part(&world->core, start, 0x1000 + seam,
		      heap % 3 == 1 ? 0x1000 + seam : 0x800 + seam, RIGHTS_RW);
	core_add(&world->core, start + 0x1000 + seam, HEAP_SIZE - 0x1000 - seam, RIGHTS_RW);
}

/* Near the ends of a block, in it, or nothing. */
static uint64_t random_word(void)
{
	const struct block *block = &model.blocks[random_below(model.count)];

	switch (random_below(6)) {
	case 0:
		return block->start;
	case 1:
		return block->start - 8 - 8 * random_below(2);
	case 2:
		return block->start + random_below(block->size + 1);
	case 3:
		return block->start + block->size - random_below(3);
	case 4:
		return random_below(0x400000);
	default:
		return 0;
	}
}

static void fill(struct world *world)
{
	for (size_t i = 0; i < world->core.segment_count; i++) {
		const struct core_segment *segment = &world->core.segments[i];

		for (uint64_t at = 0; at + 8 <= segment->present; at += 8)
			core_set(&world->core, segment->start + at, random_word());
	}
}

static allocation_id find_in_model(uint64_t address)
{
	for (size_t i = 0; i < model.count && address >= model.blocks[i].start; i++)
		if (address - model.blocks[i].start < model.blocks[i].size)
			return (allocation_id)i;
	return NO_ALLOCATION;
}

/* Stale links to headers as an allocator might leave, two of them in some. */
static unsigned int find_stale_links(const void *data, const struct allocation_index *index,
				     uint64_t start, const uint64_t words[4])
{
	unsigned int mask = 0;

	for (unsigned int i = 0; i < 4; i++) {
		const struct heap_region *region = heap_region_find(index, words[i]);
		uint64_t below = region ? words[i] + (UINT64_C(1) << region->shift) : 0;
		allocation_id id = allocation_find(index, below);

		if (id != NO_ALLOCATION && allocation_start(index, id) == below)
			mask |= 1U << i;
	}
	return start / 16 % 3 ? mask : mask & 3;
}

static unsigned int model_stale_links(struct world *world, uint64_t start, uint64_t size)
{
	uint64_t words[4] = { 0 }, known;
	const uint8_t *bytes = image_bytes(world->image, start, &known);

	if (!bytes)
		return 0;
	for (size_t i = 0; i < 4 && 8 * i + 8 <= size && 8 * i + 8 <= known; i++)
		memcpy(&words[i], bytes + 8 * i, 8);
	return find_stale_links(NULL, world->index, start, words);
}

static void assert_row(struct world *world, allocation_id id)
{
	const struct block *block = &model.blocks[id];
	struct edges row = graph_outgoing(world->graph, id);
	bool is_source = block->state == BLOCK_USED && !(block->traits & TRAIT_POINTERLESS);
	unsigned int stale_links = model_stale_links(world, block->start, block->size);
	allocation_id last = NO_ALLOCATION;
	size_t place = 0;

	for (uint64_t at = 0; is_source && at + 8 <= block->size; at += 8) {
		allocation_id target;
		uint64_t word;

		if ((at < 32 && stale_links >> (at / 8) & 1) ||
		    !image_read_u64(world->image, block->start + at, &word))
			continue;
		target = find_in_model(word);
		if (target == NO_ALLOCATION || target == id || target == last)
			continue;
		assert_true(place < row.count);
		assert_int_equal(row.targets[place++], target);
		last = target;
	}
	assert_int_equal(row.count, place);
}

static void make_world(struct world *world)
{
	world_init(world);
	model.count = 0;
	for (size_t i = 0; i < HEAPS; i++) {
		add_blocks(world, i);
		add_memory(world, i);
	}
	fill(world);
	world_open(world);
}

TEST(rows_agree_with_a_look_at_each_word)
{
	for (uint64_t chunk = 0; chunk < 12; chunk++) {
		_cleanup_(world_deinit) struct world world;

		seed = chunk;
		make_world(&world);
		allocation_set_stale_links(world.index, find_stale_links, NULL, false);
		world.progress.threads = chunk % 3;
		world_find_graph(&world);
		assert_true(graph_edge_count(world.graph) > 1000);
		for (allocation_id id = 0; id < model.count; id++)
			assert_row(&world, id);
	}
}

/* Assert that both collect the same words from the stretch, and leave none. */
static void assert_same_words(struct reference_words *words, struct reference_words *others,
			      const struct stretch *stretch)
{
	uint64_t address = stretch->range.start, other = address;

	while (address < stretch->range.end) {
		words->add(words, stretch, &address);
		others->add(others, stretch, &other);
		assert_int_equal(address, other);
		assert_int_equal(words->tail, others->tail);
		for (size_t i = 0; i < words->tail; i++) {
			assert_int_equal(words->words[i], others->words[i]);
			assert_int_equal(words->places[i], others->places[i]);
			assert_int_equal(words->sources[i], others->sources[i]);
		}
		words->tail = words->begun = 0;
		others->tail = others->begun = 0;
	}
}

TEST(processors_collect_the_same)
{
	_cleanup_(world_deinit) struct world world;
	struct reference_words words, others;
	struct stretch stretch;
	const struct bitmap *used;
	struct view view;
	size_t hint = 0, found = 0;

	make_world(&world);
	used = allocation_used(world.index);
	view = (struct view){ world.image };
	reference_words_init(&words, world.index, used, 8);
	reference_words_init_plain(&others, world.index, used);
	bitmap_for_each(id, used) {
		allocation_id end = (allocation_id)model.count;

		if (!stretch_find(&words, &view, (allocation_id)id, end, &hint, &stretch))
			continue;
		assert_same_words(&words, &others, &stretch);
		found++;
	}
	assert_true(found > 100);
}
