#include "tests/allocators/jemalloc/made.h"

static const struct build *const builds[] = { &BUILD_5_3, &BUILD_5_2, &BUILD_5_0,
					      &BUILD_57,  &BUILD_8,   &BUILD_64K };

enum { BUILDS = sizeof(builds) / sizeof(builds[0]) };

/* Numbers of classes with a quantum of 16: of 32, 48 and 28672 bytes; and with one of 8. */
enum { CLASS_32 = 2, CLASS_48 = 3, CLASS_28K = 39, CLASS_32_OF_8 = 3, CLASS_48_OF_8 = 5 };

static unsigned int class_32(const struct build *build)
{
	return build->log_quantum == 3 ? CLASS_32_OF_8 : CLASS_32;
}

/* Extents of each sort, so that a layout can be chosen. */
static uint64_t add_some(struct made *made)
{
	uint64_t slab = add_slab(made, page_of(made), class_32(made->build));

	for (unsigned int i = 0; i < 5; i++)
		free_region(made, slab, 3 * i);
	add_free(made, 2 * page_of(made), DIRTY);
	add_slab(made, page_of(made) * 3, made->build->log_quantum == 3 ? CLASS_48_OF_8 : CLASS_48);
	return slab;
}

TEST(regions_are_free_as_the_bitmap_says_in_each_build)
{
	for (size_t i = 0; i < BUILDS; i++) {
		MADE(made, builds[i]);
		uint64_t slab = add_some(&made);

		process_open(&made.process);
		assert_block(&made.process, slab, 32, BLOCK_FREE);
		assert_block(&made.process, slab + 32, 32, BLOCK_USED);
		assert_block(&made.process, slab + 32 * 12, 32, BLOCK_FREE);
		assert_block(&made.process, slab + page_of(&made) - 32, 32, BLOCK_USED);
		assert_block(&made.process, slab + page_of(&made), 2 * page_of(&made), BLOCK_FREE);
		assert_block(&made.process, slab + 3 * page_of(&made), 48, BLOCK_USED);
		assert_free_kind(&made.process, slab, "slab");
		assert_free_kind(&made.process, slab + page_of(&made), "dirty");
		assert_int_equal(count_incomplete(&made.process), 0);
	}
}

TEST(large_allocation_begins_behind_its_offset_and_ends_before_its_padding)
{
	MADE(made, &BUILD_5_3);
	uint64_t large, plain;

	add_some(&made);
	large = add_large(&made, 28672 + PAGE, CLASS_28K, 0x340);
	plain = add_large(&made, 28672 + PAGE, CLASS_28K, 0);
	process_open(&made.process);
	assert_block(&made.process, large, 28672, BLOCK_USED);
	assert_block(&made.process, plain, 28672, BLOCK_USED);
	assert_int_equal(find_block(&made.process, large - 0x340), NO_ALLOCATION);
}

TEST(large_allocation_of_fewer_pages_than_its_class_has_just_these)
{
	MADE(made, &BUILD_5_3);
	uint64_t large;

	add_some(&made);
	/* Between the classes of 64 and 80 KiB. */
	large = add_large(&made, 19 * PAGE, 45, 0);
	process_open(&made.process);
	assert_block(&made.process, large, 19 * PAGE, BLOCK_USED);
}

TEST(free_extents_are_told_apart)
{
	MADE(made, &BUILD_5_3);
	uint64_t muzzy, retained;

	add_some(&made);
	muzzy = add_free(&made, PAGE, MUZZY);
	retained = add_free(&made, 5 * PAGE, RETAINED);
	process_open(&made.process);
	assert_free_kind(&made.process, muzzy, "muzzy");
	assert_free_kind(&made.process, retained, "retained");
}

TEST(arena_is_found_with_all_of_its_metadata)
{
	MADE(made, &BUILD_5_3);
	const struct heaps *heaps;
	const struct memory_range *claims;
	size_t count;

	add_some(&made);
	process_open(&made.process);
	heaps = analysis_heaps(made.process.analysis);
	assert_int_equal(heaps_arena_count(heaps), 1);
	assert_int_equal(heaps_arena(heaps, 0).address, ARENA);
	assert_int_equal(heaps_arena(heaps, 0).size, 6 * PAGE);
	claims = heaps_bookkeeping(heaps, 0, &count);
	assert_int_equal(count, 1);
	assert_int_equal(claims[0].start, BASE);
	assert_int_equal(claims[0].end, BASE + BASE_SIZE);
}

TEST(address_in_metadata_is_told)
{
	MADE(made, &BUILD_5_3);

	add_some(&made);
	process_open(&made.process);
	assert_told(&made.process, ARENA, "the structure of arena 0");
	assert_told(&made.process, EXTENTS + 8,
		    "the metadata of the extent at 0x7d0000000000 of arena 0");
	assert_told(&made.process, NODES, "in the radix tree of extents");
	assert_told(&made.process, BASE + 0x300, "in memory for jemalloc's metadata");
	assert_told(&made.process, HEAP,
		    "a region of the slab at 0x7d0000000000 of arena 0, of the class of 32 bytes");
}

/* 36 bins whose stacks have room for 8 each; that of the class has two regions. */
static void add_bins(struct made *made, uint64_t bins, uint64_t stack, unsigned int class,
		     const uint64_t regions[2])
{
	struct core *core = &made->process.core;
	const bool falls = made->build->caches_fall;

	for (unsigned int i = 0; i < 36; i++) {
		uint64_t bin = bins + 24 * (uint64_t)i, full = stack + 64 * (uint64_t)i;
		uint64_t empty = full + 64, count = i == class ? 2 : 0;
		uint64_t first = empty - 8 * count;

		core_set(core, bin, falls ? first : count << 32);
		core_set(core, bin + 16,
			 falls ? (full & 0xffff) << 16 | (empty & 0xffff) << 32 : empty);
		for (uint64_t j = 0; j < count; j++)
			core_set(core, first + 8 * j, regions[j]);
	}
}

/* A cache in the arena's list: by its descriptor, or before there were any, by itself. */
static void add_cache(struct made *made, uint64_t stack, unsigned int class,
		      const uint64_t regions[2])
{
	struct core *core = &made->process.core;
	bool old = made->build == &BUILD_5_0;
	uint64_t bins = STACK + 0x200, cache = bins - 16, first = old ? cache : DESCRIPTOR;
	uint64_t links = old ? bins + 36 * UINT64_C(24) : DESCRIPTOR;

	core_set(core, ARENA + 0x2000, first);
	core_set(core, links, first);
	core_set(core, links + 8, first);
	if (!old)
		core_set(core, DESCRIPTOR + 16, bins);
	add_bins(made, bins, stack, class, regions);
}

TEST(regions_in_a_cache_of_a_thread_are_not_used_and_its_stack_is_no_allocation)
{
	static const struct build *const three[] = { &BUILD_5_3, &BUILD_5_2, &BUILD_5_0 };

	for (size_t i = 0; i < 3; i++) {
		MADE(made, three[i]);
		uint64_t slab = add_some(&made);
		uint64_t stack = add_large(&made, 28672 + PAGE, CLASS_28K, 0x80);
		const uint64_t regions[2] = { slab + 32, slab + 64 };

		add_cache(&made, stack, CLASS_32, regions);
		process_open(&made.process);
		assert_block(&made.process, slab + 32, 32, BLOCK_CACHED);
		assert_block(&made.process, slab + 64, 32, BLOCK_CACHED);
		assert_block(&made.process, slab + 128, 32, BLOCK_USED);
		assert_free_kind(&made.process, slab + 32, "tcache");
		assert_int_equal(find_block(&made.process, stack), NO_ALLOCATION);
		assert_told(&made.process, stack, "the stack of a thread cache");
	}
}

TEST(entry_of_a_cache_that_is_of_another_class_is_told)
{
	MADE(made, &BUILD_5_3);
	uint64_t slab = add_some(&made);
	uint64_t stack = add_large(&made, 28672 + PAGE, CLASS_28K, 0x80);
	const uint64_t regions[2] = { slab + 32, slab + 40 };

	add_cache(&made, stack, CLASS_32, regions);
	process_open(&made.process);
	assert_block(&made.process, slab + 32, 32, BLOCK_CACHED);
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"jemalloc: entries of thread caches that are no allocations of their size class: 1");
}

TEST(region_that_a_cache_has_twice_was_freed_twice)
{
	MADE(made, &BUILD_5_3);
	uint64_t slab = add_some(&made);
	uint64_t stack = add_large(&made, 28672 + PAGE, CLASS_28K, 0x80);
	const uint64_t regions[2] = { slab + 32, slab + 32 };

	add_cache(&made, stack, CLASS_32, regions);
	process_open(&made.process);
	assert_block(&made.process, slab + 32, 32, BLOCK_CACHED);
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"jemalloc: free regions that were freed twice, as lists have them twice: 1, the first at 0x7d0000000020;");
}

TEST(bitmap_that_contradicts_the_count_of_free_regions_is_told_with_its_place)
{
	MADE(made, &BUILD_5_3);
	uint64_t slab = add_some(&made);

	for (int i = 0; i < 8; i++)
		add_slab(&made, PAGE, CLASS_32);
	count_free(&made, slab, 3);
	process_open(&made.process);
	assert_block(&made.process, slab, 32, BLOCK_FREE);
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"1, the first at 0x7d0000000000, with 5 free regions by its bitmap and 8 by its count");
}

TEST(extents_that_overlap_or_are_too_large_are_left_out)
{
	MADE(made, &BUILD_5_3);
	uint64_t slab = add_some(&made), second, third;

	for (int i = 0; i < 12; i++)
		add_slab(&made, PAGE, CLASS_32);
	second = add_slab(&made, PAGE, CLASS_32);
	third = add_slab(&made, PAGE, CLASS_32);
	core_set(&made.process.core, metadata_of(&made, slab + PAGE) + 16, 4 * PAGE);
	core_set(&made.process.core, metadata_of(&made, second) + 16, UINT64_C(1) << 60);
	process_open(&made.process);
	assert_block(&made.process, slab, 32, BLOCK_FREE);
	assert_int_equal(find_block(&made.process, slab + 3 * PAGE), NO_ALLOCATION);
	assert_int_equal(find_block(&made.process, second), NO_ALLOCATION);
	assert_block(&made.process, third, 32, BLOCK_USED);
	assert_finding(analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		       "jemalloc: extents that overlap others: 1, the first at 0x7d0000003000");
	assert_finding(analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		       "jemalloc: extents whose size or place does not fit their size class: 1");
}

TEST(large_allocation_that_begins_where_none_can_is_left_out)
{
	MADE(made, &BUILD_5_3);
	uint64_t odd, late;

	add_some(&made);
	for (int i = 0; i < 8; i++)
		add_slab(&made, PAGE, CLASS_32);
	odd = add_large(&made, 28672 + PAGE, CLASS_28K, 0x341);
	late = add_large(&made, PAGE, CLASS_48, PAGE - 16);
	process_open(&made.process);
	assert_int_equal(find_block(&made.process, odd & ~UINT64_C(7)), NO_ALLOCATION);
	assert_int_equal(find_block(&made.process, late), NO_ALLOCATION);
	assert_finding(analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		       "jemalloc: extents whose size or place does not fit their size class: 2");
}

TEST(extent_that_a_thread_is_changing_is_not_counted)
{
	MADE(made, &BUILD_5_3);
	uint64_t extent;

	add_some(&made);
	extent = add_free(&made, PAGE, CHANGING);
	process_open(&made.process);
	assert_int_equal(find_block(&made.process, extent), NO_ALLOCATION);
	assert_finding(analysis_findings(made.process.analysis), FINDING_NOTE,
		       "jemalloc: extents that threads were changing when the core was taken: 1");
}

/* The record of the huge page at the heap's start, of which so many pages are active. */
static void add_huge_page(struct made *made, unsigned int pages)
{
	struct core *core = &made->process.core;
	uint64_t record = BASE + 0x80000, counts = record + 8 * 16;

	core_set(core, metadata_of(made, HEAP), core_get(core, metadata_of(made, HEAP)) | 1 << 14);
	core_set(core, record, HEAP);
	core_set(core, counts - 8, 512 - pages);
	for (int i = 0; i < 2; i++) {
		core_set(core, counts + 72 * (uint64_t)i, pages);
		core_set(core, counts + 72 * (uint64_t)i + 8, (UINT64_C(1) << pages) - 1);
	}
}

TEST(pages_of_a_huge_page_are_free_where_nothing_is_allocated)
{
	MADE(made, &BUILD_5_3);
	uint64_t cached;

	add_some(&made);
	cached = add_extent(&made, PAGE, class_count(&made), false, ACTIVE);
	add_huge_page(&made, 7);
	process_open(&made.process);
	assert_int_equal(cached, HEAP + 6 * PAGE);
	assert_block(&made.process, cached, (2 << 20) - 6 * PAGE, BLOCK_FREE);
	assert_free_kind(&made.process, cached, "dirty");
	assert_int_equal(analysis_findings(made.process.analysis)->weighed[FINDING_NOTE], 0);
}

TEST(tree_whose_root_leads_to_one_leaf_many_times_is_read_once)
{
	MADE(made, &BUILD_5_3);
	uint64_t slab = add_some(&made);

	for (uint64_t i = 0; i < 1 << 18; i++)
		core_set(&made.process.core, ROOT + 8 * i, NODES);
	process_open(&made.process);
	assert_true(allocation_count(analysis_index(made.process.analysis)) < 1000);
	(void)slab;
}

TEST(heap_that_fits_no_layout_is_recognised_and_not_read)
{
	MADE(made, &BUILD_5_3);

	for (int i = 0; i < 8; i++)
		count_free(&made, add_slab(&made, PAGE, CLASS_32), 1 + i);
	process_open(&made.process);
	assert_int_equal(allocation_count(analysis_index(made.process.analysis)), 0);
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"jemalloc is loaded (/lib/libjemalloc.so.2), and its heap could not be read: only versions 5.0 to 5.3 are, undamaged");
}
