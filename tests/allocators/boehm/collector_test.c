#include "tests/allocators/boehm/collected.h"

static const struct build *const builds[] = {
	&BUILD_7_2, &BUILD_8_2, &BUILD_SINGLE, &BUILD_BY_OBJECT, &BUILD_LARGE_BLOCKS,
};

enum { BUILDS = sizeof(builds) / sizeof(builds[0]), CYCLE = 7 };

#define START(collected, build)                                 \
	_cleanup_(collected_deinit) struct collected collected; \
	collected_init(&collected, build)

static size_t arenas_of_collector(const struct collected *collected)
{
	const struct heaps *heaps = analysis_heaps(collected->analysis);
	size_t count = 0;

	for (size_t i = 0; i < heaps_arena_count(heaps); i++)
		count += strcmp(heaps_arena(heaps, (arena_number)i).kind->name, "collected") == 0;
	return count;
}

TEST(states_are_told_in_each_build)
{
	for (size_t i = 0; i < BUILDS; i++) {
		START(collected, builds[i]);
		uint64_t fresh = add_small(&collected, 48, NORMAL, CYCLE);
		uint64_t old = add_small(&collected, 48, NORMAL, CYCLE - 2);

		free_object(&collected, fresh + 48, NORMAL, 48);
		set_mark(&collected, old, 48, 1);
		collected_open(&collected);

		/* Not marked, but handed out since the block was swept. */
		assert_state(&collected, fresh, BLOCK_USED, false);
		assert_state(&collected, fresh + 48, BLOCK_FREE, false);
		assert_state(&collected, old, BLOCK_FREE, true);
		assert_state(&collected, old + 48, BLOCK_USED, false);
		assert_state(&collected, old + 96, BLOCK_FREE, true);
		assert_int_equal(arenas_of_collector(&collected), 1);
	}
}

TEST(kinds_become_traits)
{
	static const struct {
		unsigned int kind;
		bool pointerless, collectable;
	} kinds[] = {
		{ ATOMIC, true, true },
		{ NORMAL, false, true },
		{ UNCOLLECTABLE, false, false },
		{ ATOMIC_UNCOLLECTABLE, true, false },
		{ OWN, false, true },
	};
	START(collected, &BUILD_8_2);
	uint64_t blocks[5];

	for (size_t i = 0; i < 5; i++)
		blocks[i] = add_small(&collected, 32, kinds[i].kind, CYCLE);
	collected_open(&collected);
	for (size_t i = 0; i < 5; i++) {
		assert_true(has_trait(&collected, blocks[i], TRAIT_MANAGED));
		assert_int_equal(has_trait(&collected, blocks[i], TRAIT_POINTERLESS),
				 kinds[i].pointerless);
		assert_int_equal(has_trait(&collected, blocks[i], TRAIT_COLLECTABLE),
				 kinds[i].collectable);
	}
}

TEST(large_objects_span_blocks)
{
	START(collected, &BUILD_8_2);
	uint64_t large = add_header(&collected, 10000, 10000, NORMAL, 0, CYCLE);
	uint64_t small = add_small(&collected, 2048, NORMAL, CYCLE);
	const struct allocation_index *index;

	collected_open(&collected);
	index = analysis_index(collected.analysis);
	assert_int_equal(small, large + 3 * PAGE);
	assert_int_equal(allocation_count(index), 3);
	assert_int_equal(allocation_size(index, 0), 10000);
	assert_int_equal(allocation_find(index, large + 9999), 0);
	assert_int_equal(allocation_find(index, large + 10000), NO_ALLOCATION);
	assert_int_equal(allocation_find(index, small + 4095), 2);
}

TEST(free_runs_are_free_and_unmapped_ones_are_not_there)
{
	START(collected, &BUILD_8_2);
	uint64_t run = add_header(&collected, 3 * PAGE, 3 * PAGE, 0, FREE, 3);
	uint64_t gone = add_header(&collected, 5 * PAGE, 5 * PAGE, 0, FREE | UNMAPPED, 3);
	uint64_t small = add_small(&collected, 16, NORMAL, CYCLE);

	collected_open(&collected);
	assert_state(&collected, run, BLOCK_FREE, false);
	assert_int_equal(find_object(&collected, gone), NO_ALLOCATION);
	assert_state(&collected, small, BLOCK_USED, false);
	assert_int_equal(heaps_arena(analysis_heaps(collected.analysis), 0).size, 4 * PAGE);
}

TEST(free_objects_of_threads_are_cached)
{
	START(collected, &BUILD_8_2);
	uint64_t block = add_small(&collected, 32, NORMAL, CYCLE);
	uint64_t lists = DATA + 0x8000, row = 8 * UINT64_C(25);

	/* Counters, but for the list of normal objects of 32 bytes. */
	for (uint64_t i = 0; i < 4 * 25; i++)
		core_set(&collected.core, lists + 8 * i, 1);
	core_set(&collected.core, lists + 3 * row, UINT64_MAX);
	core_set(&collected.core, lists + row + UINT64_C(8) * 2, block + 32);
	core_set(&collected.core, block + 32, block + 96);
	/* The collector marks them. */
	set_mark(&collected, block, 32, 1);
	collected_open(&collected);
	assert_state(&collected, block, BLOCK_USED, false);
	assert_state(&collected, block + 32, BLOCK_CACHED, false);
	assert_state(&collected, block + 64, BLOCK_USED, false);
	assert_state(&collected, block + 96, BLOCK_CACHED, false);
}

TEST(list_that_leads_astray_is_told)
{
	START(collected, &BUILD_8_2);
	uint64_t block = add_small(&collected, 32, NORMAL, CYCLE);

	free_object(&collected, block, NORMAL, 32);
	free_object(&collected, block + 64, NORMAL, 32);
	core_set(&collected.core, block, block + 8);
	collected_open(&collected);
	assert_state(&collected, block, BLOCK_FREE, false);
	assert_state(&collected, block + 64, BLOCK_FREE, false);
	assert_finding(analysis_findings(collected.analysis), FINDING_INCOMPLETE, "where none is");
}

TEST(list_that_is_a_ring_ends)
{
	START(collected, &BUILD_8_2);
	uint64_t block = add_small(&collected, 32, NORMAL, CYCLE);

	free_object(&collected, block, NORMAL, 32);
	free_object(&collected, block + 64, NORMAL, 32);
	core_set(&collected.core, block, block + 64);
	collected_open(&collected);
	assert_state(&collected, block, BLOCK_FREE, false);
	assert_state(&collected, block + 32, BLOCK_USED, false);
}

/*
 * Lists of two sizes lead up and down, over many blocks; one of them to where no object is, behind
 * its first ones. What is in use links as well.
 */
static void add_lists(struct collected *collected, uint64_t blocks[static 24])
{
	for (int i = 0; i < 24; i++)
		blocks[i] = add_small(collected, i % 3 ? 32 : 48, NORMAL, CYCLE);
	free_object(collected, blocks[5], NORMAL, 32);
	core_set(&collected->core, blocks[5], blocks[5] + 8);
	for (int i = 0; i < 240; i++) {
		uint64_t size = i * 7 % 24 % 3 ? 32 : 48;

		free_object(collected, blocks[i * 7 % 24] + (3 * i + 1) % 80 * size, NORMAL, size);
	}
	core_set(&collected->core, blocks[4] + 32, blocks[4] + 64);
}

TEST(lists_are_the_same_in_a_dump_larger_than_memory)
{
	enum { MOST = 24 * 128 };
	enum block_state states[2][MOST] = { 0 };

	for (int i = 0; i < 2; i++) {
		START(collected, &BUILD_8_2);
		uint64_t blocks[24];
		const struct allocation_index *index;

		add_lists(&collected, blocks);
		collected.options.memory = i ? PAGE : 0;
		collected_open(&collected);
		index = analysis_index(collected.analysis);
		assert_in_range(allocation_count(index), 24 * 85, MOST);
		for (size_t id = 0; id < allocation_count(index); id++)
			states[i][id] = allocation_state(index, (allocation_id)id);
		assert_state(&collected, blocks[7] + 4 * 32, BLOCK_FREE, false);
		assert_finding(analysis_findings(collected.analysis), FINDING_INCOMPLETE,
			       "where none is");
	}
	assert_memory_equal(states[0], states[1], sizeof(states[0]));
}

TEST(damaged_header_costs_its_block_only)
{
	START(collected, &BUILD_8_2);
	uint64_t first = add_small(&collected, 32, NORMAL, CYCLE);
	uint64_t damaged = add_small(&collected, 32, NORMAL, CYCLE);

	for (int i = 0; i < 30; i++)
		add_small(&collected, 32, NORMAL, CYCLE);
	core_set(&collected.core, header_of(&collected, damaged) + 16, 0x1234);
	collected_open(&collected);
	assert_state(&collected, first, BLOCK_USED, false);
	assert_int_equal(find_object(&collected, damaged), NO_ALLOCATION);
	assert_state(&collected, damaged + PAGE, BLOCK_USED, false);
	assert_finding(analysis_findings(collected.analysis), FINDING_INCOMPLETE,
		       "blocks of the collector's heap with no sound header: ");
}

TEST(what_only_looks_like_an_index_is_none)
{
	START(collected, &BUILD_8_2);
	uint64_t block = add_small(&collected, 32, NORMAL, CYCLE);

	/* Its header stands for another block. */
	core_set(&collected.core, header_of(&collected, block) + 16, block + PAGE);
	collected_open(&collected);
	assert_int_equal(arenas_of_collector(&collected), 0);
	assert_int_equal(allocation_count(analysis_index(collected.analysis)), 0);
}

TEST(collector_is_found_behind_a_table)
{
	START(collected, &BUILD_8_2);
	struct core *core = &collected.core;
	uint64_t block = add_small(&collected, 32, NORMAL, CYCLE);
	uint64_t end = DATA + DATA_SIZE - 8;

	core_set(core, DATA + 0x100, 0);
	for (uint64_t i = size_map_of(&BUILD_8_2) + 0x1000; i < end; i += 8)
		core_set(core, i, HEAP + HEAP_SIZE / 2);
	core_set(core, end, INDEX);
	collected_open(&collected);
	assert_state(&collected, block, BLOCK_USED, false);
}

static bool is_claimed(const struct collected *collected, uint64_t address)
{
	const struct allocation_index *index = analysis_index(collected->analysis);
	size_t number = heap_claim_above(index, address);

	return number < heap_claim_count(index) && heap_claim(index, number).start <= address;
}

TEST(bookkeeping_is_no_root)
{
	START(collected, &BUILD_8_2);
	uint64_t block = add_small(&collected, 32, NORMAL, CYCLE);

	collected_open(&collected);
	assert_true(is_claimed(&collected, header_of(&collected, block)));
}

/* The kernel may have mapped other memory right behind the collector's. */
TEST(what_follows_the_memory_of_the_collector_is_not_its_own)
{
	START(collected, &BUILD_8_2);
	const uint64_t end = SCRATCH + SCRATCH_SIZE / 2, spare = SCRATCH + SCRATCH_SIZE / 4;

	add_small(&collected, 32, NORMAL, CYCLE);
	core_set(&collected.core, LISTS - 16, end);
	core_set(&collected.core, LISTS - 8, spare);
	core_set(&collected.core, spare + 16, HEAP + 3 * PAGE);
	core_set(&collected.core, spare + 32, 64);
	collected_open(&collected);
	assert_true(is_claimed(&collected, spare));
	assert_false(is_claimed(&collected, end));
}

static bool says(const struct collected *collected, const char *words)
{
	return find_finding(analysis_findings(collected->analysis), words);
}

/*
 * When a collection begins, no object has a mark. What is in no list then is in use or dead; if all
 * is in lists, nothing is doubtful.
 */
TEST(collection_that_has_just_begun_is_said)
{
	enum { OBJECTS = PAGE / 32, BLOCKS = 24, COLLECTING, LISTED, MARKED, CASES };

	for (int i = COLLECTING; i < CASES; i++) {
		START(collected, &BUILD_8_2);

		add_small(&collected, 32, NORMAL, CYCLE);
		for (int j = 0; j < BLOCKS; j++) {
			uint64_t block = add_small(&collected, 32, NORMAL, CYCLE - 2);

			for (uint64_t k = 0; k < OBJECTS && i == LISTED; k++)
				free_object(&collected, block + 32 * k, NORMAL, 32);
			if (i == MARKED)
				set_mark(&collected, block, 32, 1);
		}
		collected_open(&collected);
		assert_int_equal(
			says(&collected, "the core was taken during a collection: of its objects"),
			i == COLLECTING);
		assert_int_equal(says(&collected, "the core was taken during a collection"),
				 i != MARKED);
	}
}

TEST(lists_that_are_not_found_are_said)
{
	for (int lacks = 0; lacks <= 1; lacks++) {
		START(collected, &BUILD_8_2);

		add_small(&collected, 32, NORMAL, CYCLE);
		if (lacks)
			core_set(&collected.core, size_map_of(&BUILD_8_2) + 8 * 4, 384);
		collected_open(&collected);
		assert_int_equal(
			says(&collected, "the collector's lists of free objects were not found in"),
			lacks);
	}
}
