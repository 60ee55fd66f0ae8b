#include "tests/allocators/glibc/process.h"

extern const struct allocator allocator_glibc;

static const struct glibc_version *const versions[] = {
	&GLIBC_2_31, &GLIBC_2_36, &GLIBC_2_43, /* has no fast bins */
};

enum { VERSIONS = sizeof(versions) / sizeof(versions[0]) };

TEST(each_chunk_has_its_size_and_state)
{
	for (size_t i = 0; i < VERSIONS; i++) {
		_cleanup_(process_deinit) struct process process;
		uint64_t small, freed, cached, other, large;

		process_init(&process, versions[i]);
		small = process_allocate(&process, 0x20);
		freed = process_allocate(&process, 0x110);
		cached = process_allocate(&process, 0x40);
		other = process_allocate(&process, 0x40);
		large = process_allocate(&process, 0x1000);
		process_free(&process, freed);
		process_cache(&process, cached);
		process_cache(&process, other);
		process_finish(&process);
		process_open(&process, STAGE_HEAP);
		assert_block(&process, process.cache, versions[i]->counts ? 0x288 : 0x2f8,
			     BLOCK_USED);
		assert_block(&process, small, 0x18, BLOCK_USED);
		assert_block(&process, freed, 0x108, BLOCK_FREE);
		assert_block(&process, cached, 0x38, BLOCK_CACHED);
		assert_block(&process, other, 0x38, BLOCK_CACHED);
		assert_block(&process, large, 0xff8, BLOCK_USED);
		/* Top, of which the last word lends nothing to a next one. */
		assert_block(&process, process.next + 16, HEAP + HEAP_SIZE - process.next - 16,
			     BLOCK_FREE);
		assert_int_equal(allocation_count(analysis_index(process.analysis)), 7);
		assert_undamaged(&process);
	}
}

TEST(chunks_in_fast_bins_are_free)
{
	static const struct glibc_version *const with_fast_bins[] = {
		&GLIBC_2_11, &GLIBC_2_19, &GLIBC_2_25, &GLIBC_2_31, &GLIBC_2_36,
	};

	for (size_t i = 0; i < sizeof(with_fast_bins) / sizeof(*with_fast_bins); i++) {
		_cleanup_(process_deinit) struct process process;
		uint64_t chunks[6];

		process_init(&process, with_fast_bins[i]);
		for (int j = 0; j < 6; j++)
			chunks[j] = process_allocate(&process, 0x20 + 0x10 * (j / 3));
		for (int j = 0; j < 5; j++)
			process_free_fast(&process, chunks[j]);
		process_finish(&process);
		process_open(&process, STAGE_HEAP);
		for (int j = 0; j < 5; j++)
			assert_block(&process, chunks[j], 0x18 + 0x10 * (j / 3), BLOCK_FREE);
		assert_block(&process, chunks[5], 0x28, BLOCK_USED);
		assert_undamaged(&process);
	}
}

static const struct glibc_version *const old_versions[] = { &GLIBC_2_11, &GLIBC_2_19, &GLIBC_2_25 };

enum { OLD_VERSIONS = sizeof(old_versions) / sizeof(*old_versions) };

/* A chunk of the size of one, full of zeros, which a thread points at. */
TEST(before_2_26_threads_have_no_cache)
{
	for (size_t i = 0; i < OLD_VERSIONS; i++) {
		_cleanup_(process_deinit) struct process process;
		uint64_t freed, used;

		process_init(&process, old_versions[i]);
		freed = process_allocate(&process, 0x110);
		used = process_allocate(&process, 0x40);
		process_free(&process, freed);
		/* As a count and a first member. */
		process_cache(&process, used);
		process_finish(&process);
		process_open(&process, STAGE_HEAP);
		assert_block(&process, process.cache, 0x288, BLOCK_USED);
		assert_block(&process, freed, 0x108, BLOCK_FREE);
		assert_block(&process, used, 0x38, BLOCK_USED);
		assert_int_equal(heaps_arena(analysis_heaps(process.analysis), 0).stated_size,
				 HEAP_SIZE);
		assert_undamaged(&process);
	}
}

/* malloc's counts were elsewhere in its parameters. */
TEST(missing_mapped_chunks_are_told_of_old_versions)
{
	for (size_t i = 0; i < OLD_VERSIONS; i++) {
		_cleanup_(process_deinit) struct process process;

		process_init(&process, old_versions[i]);
		process.mapped_count = 1;
		process.mapped_size = 0x21000;
		process_finish(&process);
		process_open(&process, STAGE_HEAP);
		assert_incomplete(&process, "malloc counts 1 mmapped chunks of 135168 bytes");
	}
}

static void assert_kind(const struct process *process, uint64_t user, const char *kind)
{
	allocation_id id = process_find(process, user);
	size_t hint = 0;

	assert_int_not_equal(id, NO_ALLOCATION);
	assert_null(heaps_sort_free(analysis_heaps(process->analysis)));
	assert_string_equal(heaps_free_kind(analysis_heaps(process->analysis), id, &hint)->name,
			    kind);
}

TEST(free_chunks_are_of_the_kind_of_their_list)
{
	for (size_t i = 0; i < VERSIONS; i++) {
		_cleanup_(process_deinit) struct process process;
		uint64_t chunks[5], fast;

		process_init(&process, versions[i]);
		for (int j = 0; j < 5; j++) {
			chunks[j] = process_allocate(&process, j < 3 ? 0x80 : 0x400);
			fast = process_allocate(&process, 0x20);
		}
		process_cache(&process, chunks[0]);
		process_free(&process, chunks[1]);
		process_free_into(&process, chunks[2], 8);
		process_free(&process, chunks[3]);
		process_free_into(&process, chunks[4], 64);
		if (versions[i]->fastbins)
			process_free_fast(&process, fast);
		process_finish(&process);
		process_open(&process, STAGE_HEAP);
		assert_kind(&process, chunks[0], "tcache");
		assert_kind(&process, chunks[1], "unsorted bin");
		assert_kind(&process, chunks[2], "small bin");
		assert_kind(&process, chunks[3], "unsorted bin");
		assert_kind(&process, chunks[4], "large bin");
		if (versions[i]->fastbins)
			assert_kind(&process, fast, "fast bin");
		assert_kind(&process, process.next + 16, "top");
		assert_undamaged(&process);
	}
}

/* The last word of a used chunk is the first of the next one. */
TEST(allocations_reach_into_the_next_chunk_s_header)
{
	_cleanup_(process_deinit) struct process process;
	const struct allocation_index *index;
	uint64_t first, second;

	process_init(&process, &GLIBC_2_36);
	first = process_allocate(&process, 0x20);
	second = process_allocate(&process, 0x20);
	process_finish(&process);
	process_open(&process, STAGE_HEAP);
	index = analysis_index(process.analysis);
	assert_int_equal(second, first + 0x20);
	assert_int_equal(allocation_find(index, first + 0x17), process_find(&process, first));
	assert_int_equal(allocation_find(index, first + 0x18), NO_ALLOCATION);
	assert_int_equal(allocation_find(index, second - 1), NO_ALLOCATION);
}

TEST(heap_and_arena_are_claimed)
{
	_cleanup_(process_deinit) struct process process;
	const struct allocation_index *index;

	process_init(&process, &GLIBC_2_36);
	process_finish(&process);
	process_open(&process, STAGE_HEAP);
	index = analysis_index(process.analysis);
	assert_int_equal(heap_claim_count(index), 2);
	assert_int_equal(heap_claim(index, 0).start, HEAP);
	assert_int_equal(heap_claim(index, 0).end, HEAP + HEAP_SIZE);
	assert_int_equal(heap_claim(index, 1).start, ARENA);
	assert_int_equal(heap_claim(index, 1).end, ARENA + GLIBC_2_36.size);
	assert_int_equal(heaps_arena_count(analysis_heaps(process.analysis)), 2);
	assert_int_equal(heaps_arena(analysis_heaps(process.analysis), 0).size, HEAP_SIZE);
}

/* References to a chunk on a list do not keep it. */
TEST(bookkeeping_anchors_nothing)
{
	for (size_t i = 0; i < VERSIONS; i++) {
		_cleanup_(process_deinit) struct process process;
		uint64_t kept, lost;

		process_init(&process, versions[i]);
		kept = process_allocate(&process, 0x30);
		lost = process_allocate(&process, 0x30);
		process_cache(&process, process_allocate(&process, 0x50));
		/* A pointer that was left in free memory. */
		core_set(&process.core, process_allocate(&process, 0x50) + 0x20, lost);
		process_cache(&process, process.next - 0x50 + 16);
		core_set(&process.core, DATA + 8, kept);
		process_finish(&process);
		process_open(&process, STAGE_LEAKS);
		assert_int_equal(bitmap_weight(analysis_leaked(process.analysis)), 1);
		assert_true(bitmap_get(analysis_leaked(process.analysis),
				       process_find(&process, lost)));
		assert_int_equal(analysis_leaks(process.analysis)->count, 1);
		assert_undamaged(&process);
	}
}

TEST(program_that_never_called_malloc_has_an_empty_heap)
{
	for (size_t i = 0; i < VERSIONS; i++) {
		_cleanup_(process_deinit) struct process process;

		process_init(&process, versions[i]);
		memset(core_at(&process.core, DATA, DATA_SIZE), 0, DATA_SIZE);
		memset(core_at(&process.core, HEAP, HEAP_SIZE), 0, HEAP_SIZE);
		core_set(&process.core, ARENA + versions[i]->next, ARENA);
		core_set(&process.core, ARENA + versions[i]->next + 16, 1);
		process_open(&process, STAGE_LEAKS);
		assert_int_equal(allocation_count(analysis_index(process.analysis)), 0);
		assert_false(findings_incomplete(analysis_findings(process.analysis)));
		assert_finding(analysis_findings(process.analysis), FINDING_NOTE,
			       "malloc was never called in this process");
	}
}

TEST(process_without_malloc_says_so)
{
	_cleanup_(process_deinit) struct process process;

	process_init(&process, &GLIBC_2_36);
	memset(core_at(&process.core, DATA, DATA_SIZE), 0, DATA_SIZE);
	memset(core_at(&process.core, HEAP, HEAP_SIZE), 0, HEAP_SIZE);
	process_open(&process, STAGE_HEAP);
	assert_int_equal(allocation_count(analysis_index(process.analysis)), 0);
	assert_incomplete(&process, "no heap was found");
}

/* As the end of a core that was cut off, where libc's data stands. */
TEST(heap_without_its_arena_is_found_by_its_shape)
{
	for (size_t i = 0; i < VERSIONS; i++) {
		_cleanup_(process_deinit) struct process process;
		uint64_t user, freed, cached;

		process_init(&process, versions[i]);
		user = process_allocate(&process, 0x30);
		freed = process_allocate(&process, 0x500);
		cached = process_allocate(&process, 0x40);
		process_free(&process, freed);
		process_cache(&process, cached);
		process_finish(&process);
		memset(core_at(&process.core, DATA, DATA_SIZE), 0, DATA_SIZE);
		process_open(&process, STAGE_HEAP);
		assert_block(&process, user, 0x28, BLOCK_USED);
		assert_block(&process, freed, 0x4f8, BLOCK_FREE);
		assert_block(&process, cached, 0x38, BLOCK_CACHED);
		assert_int_equal(process_used(&process), 2);
		assert_incomplete(
			&process,
			"malloc's main arena was not found in the core: its heaps are found by their shape");
	}
}

/* If mp_ is unreadable, the heap begins with top's mapping. */
TEST(heap_is_found_without_malloc_s_parameters)
{
	_cleanup_(process_deinit) struct process process;
	uint64_t user;

	process_init(&process, &GLIBC_2_36);
	user = process_allocate(&process, 0x30);
	process_finish(&process);
	process.mapped_size = 1; /* no page: these are not its counts */
	process_open(&process, STAGE_HEAP);
	assert_block(&process, user, 0x28, BLOCK_USED);
	assert_no_incomplete(&process, "main arena was not found");
}

/* Memory that malloc counts and the core lacks is reported, from a page on. */
TEST(memory_that_the_main_arena_lacks_is_said)
{
	for (int lacks = 0; lacks <= 1; lacks++) {
		_cleanup_(process_deinit) struct process process;

		process_init(&process, &GLIBC_2_36);
		process_allocate(&process, 0x30);
		process_finish(&process);
		core_set(&process.core, ARENA + GLIBC_2_36.system_memory,
			 HEAP_SIZE + (lacks ? PAGE : PAGE / 2));
		process_open(&process, STAGE_HEAP);
		if (lacks)
			assert_incomplete(
				&process,
				"the main arena has %d bytes from the system, but only %d were found",
				(int)(HEAP_SIZE + PAGE), (int)HEAP_SIZE);
		else
			assert_no_incomplete(&process, "bytes from the system, but only");
	}
}

TEST(chunks_of_their_own_mapping_have_whole_pages)
{
	const uint64_t mapped = 40 * 4096 - 16, in_arena = 168;

	assert_true(allocator_glibc.size_fits(mapped, mapped - 2000, true));
	assert_false(allocator_glibc.size_fits(mapped, mapped - 4096, true));
	assert_false(allocator_glibc.size_fits(mapped, mapped + 1, true));
	assert_true(allocator_glibc.size_fits(in_arena, in_arena - 8, true));
	assert_false(allocator_glibc.size_fits(in_arena, in_arena - 100, true));
}
