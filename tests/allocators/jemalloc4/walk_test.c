/*
 * Processes with jemalloc 4.5 and 3.6, made in memory: an arena, and a chunk with runs.
 */
#include "tests/allocators/process.h"

static const uint64_t BASE = 0x7e0000000000, ARENA = BASE + 0x1000, CHUNK = 0x7d0000000000,
		      HUGE = 0x7c0000000000, ROOT = DATA + 0x40, TREES = DATA + 0x1000;

/* What differs: see allocators/jemalloc4/chunks.c. */
struct version {
	uint64_t chunk_bytes, map, element, word, bias;
	unsigned int size_shift, class_shift;
};

static const struct version NEW = { 2 << 20, 120, 8, 0, 13, 1, 5 };
static const struct version OLD = { 4 << 20, 48, 24, 16, 6, 0, 4 };
enum { ALLOCATED = 1, LARGE = 2, DIRTY_NEW = 0x10, NO_CLASS = 0xff };
/* Numbers of classes, of 64 and of 128 bytes. */
enum { CLASS_64 = 4, CLASS_128 = 8 };

struct made {
	struct process process;
	const struct version *version;
	uint64_t page; /* the next free one of the chunk */
};

static void made_init(struct made *made, const struct version *version)
{
	struct core *core = &made->process.core;

	made->version = version;
	made->page = version->bias;
	process_init(&made->process, "/lib/libjemalloc.so.1");
	core_add(core, BASE, version->chunk_bytes, RIGHTS_RW);
	core_add(core, CHUNK, version->chunk_bytes, RIGHTS_RW);
	core_add(core, HUGE, 2 * version->chunk_bytes, RIGHTS_RW);
	core_set(core, ROOT, ARENA);
	core_set(core, CHUNK, ARENA);
	if (version == &NEW) {
		core_set(core, CHUNK + 8, CHUNK);
		core_set(core, CHUNK + 16, version->chunk_bytes);
	}
}

DEFINE_MADE_DEINIT

static void set_word(struct made *made, uint64_t page, uint64_t size, uint64_t class,
		     uint64_t flags)
{
	const struct version *version = made->version;

	core_set(&made->process.core,
		 CHUNK + version->map + version->element * (page - version->bias) + version->word,
		 size << version->size_shift | class << version->class_shift | flags);
}

/* Where what the chunk or the run has of a run is. */
static uint64_t header_of(const struct made *made, uint64_t page)
{
	const struct version *version = made->version;
	uint64_t pages = version->chunk_bytes / PAGE - version->bias;

	return version == &NEW ? CHUNK + version->map + 8 * pages + 96 * (page - version->bias) + 28
			       : CHUNK + page * PAGE + 12;
}

/* A page of regions, as its bitmap says; returns its address. */
static uint64_t add_small(struct made *made, unsigned int class, uint64_t free_bits)
{
	uint64_t page = made->page++, header = header_of(made, page);
	uint32_t count = (uint32_t)__builtin_popcountll(free_bits);

	set_word(made, page, 0, class, ALLOCATED);
	memcpy(core_at(&made->process.core, header, 4), &count, 4);
	memcpy(core_at(&made->process.core, header + 4, 8), &free_bits, 8);
	return CHUNK + page * PAGE;
}

static uint64_t add_pages(struct made *made, uint64_t pages, uint64_t flags)
{
	uint64_t page = made->page;

	made->page += pages;
	set_word(made, page, pages * PAGE, NO_CLASS, flags);
	return CHUNK + page * PAGE;
}

/* The rest of the chunk is free. */
static void finish(struct made *made)
{
	add_pages(made, made->version->chunk_bytes / PAGE - made->page, 0);
	process_open(&made->process);
}

TEST(regions_are_as_the_bitmap_says)
{
	MADE(made, &NEW);
	uint64_t run = add_small(&made, CLASS_64, 2);

	finish(&made);
	assert_block(&made.process, run, 64, BLOCK_USED);
	assert_block(&made.process, run + 64, 64, BLOCK_FREE);
	assert_block(&made.process, run + PAGE - 64, 64, BLOCK_USED);
	assert_free_kind(&made.process, run + 64, "run");
	assert_told(&made.process, run + 64, "in the run of 4096 bytes at 0x7d000000d000");
	assert_told(&made.process, CHUNK + 0x200, "in the header of the chunk at 0x7d0000000000");
	assert_int_equal(count_incomplete(&made.process), 0);
}

TEST(large_allocations_are_their_pages)
{
	MADE(made, &NEW);
	uint64_t large = add_pages(&made, 5, ALLOCATED | LARGE);
	uint64_t dirty = add_pages(&made, 3, DIRTY_NEW);

	finish(&made);
	assert_block(&made.process, large, 5 * PAGE, BLOCK_USED);
	assert_block(&made.process, dirty, 3 * PAGE, BLOCK_FREE);
	assert_free_kind(&made.process, dirty, "dirty");
	assert_free_kind(&made.process, dirty + 3 * PAGE, "clean");
}

TEST(runs_of_3_6_have_a_header)
{
	MADE(made, &OLD);
	uint64_t run = add_small(&made, CLASS_64, 4), first = run + PAGE - 63 * 64;

	finish(&made);
	assert_block(&made.process, first, 64, BLOCK_USED);
	assert_block(&made.process, first + 2 * 64, 64, BLOCK_FREE);
	assert_int_equal(find_block(&made.process, run), NO_ALLOCATION);
	assert_int_equal(count_incomplete(&made.process), 0);
}

TEST(huge_allocation_has_a_node_among_the_regions)
{
	MADE(made, &NEW);
	struct core *core = &made.process.core;
	uint64_t node = add_small(&made, CLASS_128, ~UINT64_C(1) & UINT32_MAX);

	core_set(core, node, ARENA);
	core_set(core, node + 8, HUGE);
	core_set(core, node + 16, 3 << 20);
	finish(&made);
	assert_block(&made.process, HUGE, 3 << 20, BLOCK_USED);
	assert_int_equal(find_block(&made.process, node), NO_ALLOCATION);
}

/* A node of 3.6, of a tree in which it is alone; in a tree by size, too, if it is free. */
static void add_tree_node(struct made *made, bool is_free)
{
	struct core *core = &made->process.core;
	uint64_t node = BASE + 0x8000, by_size = TREES, by_address = TREES + 0x100;

	core_set(core, node + 40, HUGE);
	core_set(core, node + 48, made->version->chunk_bytes);
	core_set(core, by_address, node);
	core_set(core, node + 16, by_address + 8);
	core_set(core, node + 24, (by_address + 8) | 1);
	if (!is_free)
		return;
	core_set(core, by_size, node);
	core_set(core, node, by_size + 8);
	core_set(core, node + 8, (by_size + 8) | 1);
}

TEST(huge_allocation_of_3_6_is_in_one_tree)
{
	MADE(made, &OLD);

	add_tree_node(&made, false);
	finish(&made);
	assert_block(&made.process, HUGE, 4 << 20, BLOCK_USED);
}

TEST(free_chunk_of_3_6_is_in_two_trees)
{
	MADE(made, &OLD);

	add_tree_node(&made, true);
	finish(&made);
	assert_block(&made.process, HUGE, 4 << 20, BLOCK_FREE);
	assert_free_kind(&made.process, HUGE, "chunks");
}

/* A cache with so many regions of the class, from first on; stacks are of two words. */
static void add_cache(struct made *made, unsigned int class, uint64_t region)
{
	struct core *core = &made->process.core;
	uint64_t cache = BASE + 0x10000, stacks = cache + 40 + 32 * 41;

	core_set(core, ARENA + 0x80, cache);
	core_set(core, cache, cache);
	core_set(core, cache + 8, cache);
	for (uint64_t i = 0; i < 41; i++) {
		uint64_t bin = cache + 40 + 32 * i;

		core_set(core, bin + 24, stacks + 16 * (i + (made->version == &NEW)));
		if (i != class)
			continue;
		core_set(core, bin + 16, 1);
		core_set(core, stacks + 16 * i + (made->version == &NEW ? 8 : 0), region);
	}
}

TEST(regions_in_a_cache_are_free)
{
	static const struct version *const versions[] = { &NEW, &OLD };

	for (int i = 0; i < 2; i++) {
		MADE(made, versions[i]);
		uint64_t run = add_small(&made, CLASS_64, 0), first = run + (i ? 64 : 0);

		add_cache(&made, CLASS_64, first + 64);
		finish(&made);
		assert_block(&made.process, first, 64, BLOCK_USED);
		assert_block(&made.process, first + 64, 64, BLOCK_CACHED);
		assert_free_kind(&made.process, first + 64, "tcache");
		assert_int_equal(count_incomplete(&made.process), 0);
	}
}

TEST(contradictions_are_said)
{
	MADE(made, &NEW);
	struct core *core = &made.process.core;
	uint64_t run = add_small(&made, CLASS_64, 1);
	const uint32_t wrong = 7;

	memcpy(core_at(core, header_of(&made, made.version->bias), 4), &wrong, 4);
	add_cache(&made, CLASS_64, run + 8);
	finish(&made);
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"jemalloc4: runs whose bitmap contradicts their count of free regions: 1, the first at 0x7d000000d000; their regions count as the bitmaps say");
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"jemalloc4: entries of thread caches that are no allocations of their size class: 1");
}

TEST(damaged_map_costs_the_rest_of_its_chunk)
{
	MADE(made, &NEW);
	struct core *core = &made.process.core;
	const uint64_t next = HUGE;
	uint64_t run = add_small(&made, CLASS_64, 0);

	core_set(core, next, ARENA);
	core_set(core, next + 8, next);
	core_set(core, next + 16, made.version->chunk_bytes);
	core_set(core, next + made.version->map, PAGE << 1 | 0xff << 5 | ALLOCATED | LARGE);
	finish(&made);
	(void)run;
	assert_int_equal(find_block(&made.process, HUGE + 13 * PAGE), NO_ALLOCATION);
	assert_block(&made.process, run, 64, BLOCK_USED);
}

TEST(all_lie_side_by_side)
{
	static const struct version *const versions[] = { &NEW, &OLD };

	for (int i = 0; i < 2; i++) {
		MADE(made, versions[i]);
		struct core *core = &made.process.core;
		uint64_t first = add_small(&made, CLASS_64, 0xf0) + (i ? 64 : 0);
		uint64_t large = add_pages(&made, 4, ALLOCATED | LARGE);
		uint64_t node = add_small(&made, CLASS_128, INT32_MAX & ~UINT64_C(7));

		if (i) {
			add_tree_node(&made, false);
		} else {
			core_set(core, node, ARENA);
			core_set(core, node + 8, HUGE);
			core_set(core, node + 16, 3 << 20);
		}
		add_cache(&made, CLASS_64, first + 64);
		core_set(core, first, large);
		core_set(core, large + 64, HUGE);
		finish(&made);
		assert_block(&made.process, first + 64, 64, BLOCK_CACHED);
		assert_block(&made.process, large, 4 * PAGE, BLOCK_USED);
		assert_block(&made.process, HUGE, i ? 4 << 20 : 3 << 20, BLOCK_USED);
		assert_int_equal(count_incomplete(&made.process), 0);
	}
}
