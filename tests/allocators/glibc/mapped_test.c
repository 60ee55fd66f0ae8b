/*
 * Chunks with mappings of their own, which no list names.
 */
#include "tests/allocators/glibc/process.h"

static const struct glibc_version *const versions[] = {
	&GLIBC_2_31, &GLIBC_2_36, &GLIBC_2_43, /* counts the mapping's last bytes differently */
};

enum { VERSIONS = sizeof(versions) / sizeof(versions[0]) };

/* An anonymous mapping. */
static const uint64_t MAPPING = 0x7d0000010000, LENGTH = 0x40000;

static void init(struct process *process, const struct glibc_version *version)
{
	process_init(process, version);
	core_add(&process->core, MAPPING, LENGTH, RIGHTS_RW);
	process_finish(process);
}

/* The usable size of a chunk that begins with its mapping. */
static uint64_t usable(const struct process *process, uint64_t size)
{
	return size - 16 - process->version->map_tail / 2;
}

TEST(mapping_that_is_a_chunk_is_one_allocation)
{
	for (size_t i = 0; i < VERSIONS; i++) {
		_cleanup_(process_deinit) struct process process;
		uint64_t user;

		init(&process, versions[i]);
		user = process_map(&process, MAPPING, LENGTH, 0);
		process_open(&process, STAGE_HEAP);
		assert_block(&process, user, usable(&process, LENGTH), BLOCK_USED);
		assert_undamaged(&process);
	}
}

/* The kernel makes one mapping of neighbours. */
TEST(neighbours_in_one_mapping_are_told_apart)
{
	for (size_t i = 0; i < VERSIONS; i++) {
		_cleanup_(process_deinit) struct process process;
		uint64_t user[4];

		init(&process, versions[i]);
		for (uint64_t j = 0; j < 4; j++)
			user[j] = process_map(&process, MAPPING + 0x10000 * j, 0x10000, 0);
		process_open(&process, STAGE_HEAP);
		for (int j = 0; j < 4; j++)
			assert_block(&process, user[j], usable(&process, 0x10000), BLOCK_USED);
		assert_undamaged(&process);
	}
}

TEST(memory_beside_a_chunk_is_a_root)
{
	for (size_t i = 0; i < VERSIONS; i++) {
		_cleanup_(process_deinit) struct process process;
		const struct allocation_index *index;
		uint64_t user, kept, lost;

		init(&process, versions[i]);
		process.next = HEAP + (versions[i]->counts ? 0x290 : 0x300);
		kept = process_allocate(&process, 0x30);
		lost = process_allocate(&process, 0x30);
		process_finish(&process);
		user = process_map(&process, MAPPING + 0x10000, 0x20000, 0);
		core_set(&process.core, MAPPING + 0x8000, user);
		core_set(&process.core, MAPPING + 0x38000, kept);
		process_open(&process, STAGE_REACHABILITY);
		index = analysis_index(process.analysis);
		assert_block(&process, user, usable(&process, 0x20000), BLOCK_USED);
		assert_null(heap_region_find(index, MAPPING + 0xffff));
		assert_null(heap_region_find(index, MAPPING + 0x30000));
		assert_true(bitmap_get(analysis_anchored(process.analysis),
				       process_find(&process, user)));
		assert_true(bitmap_get(analysis_anchored(process.analysis),
				       process_find(&process, kept)));
		assert_true(bitmap_get(analysis_leaked(process.analysis),
				       process_find(&process, lost)));
	}
}

TEST(aligned_chunk_begins_where_the_program_s_memory_does)
{
	for (size_t i = 0; i < VERSIONS; i++) {
		_cleanup_(process_deinit) struct process process;
		uint64_t user;

		init(&process, versions[i]);
		/* memalign() leaves the header where the mapping begins. */
		core_set(&process.core, MAPPING + 8, (LENGTH - versions[i]->map_tail) | MMAPPED);
		user = process_map(&process, MAPPING, LENGTH, 0x10000 - 16);
		assert_int_equal(user, MAPPING + 0x10000);
		process_open(&process, STAGE_HEAP);
		assert_block(&process, user, usable(&process, LENGTH - 0x10000 + 16), BLOCK_USED);
		assert_int_equal(process_find(&process, MAPPING + 16), NO_ALLOCATION);
		/* The bytes below the moved start belong to the allocator. */
		assert_non_null(
			heap_region_find(analysis_index(process.analysis), MAPPING + 0x100));
		assert_undamaged(&process);
	}
}

TEST(numbers_that_look_like_a_header_are_not_one)
{
	_cleanup_(process_deinit) struct process process;
	struct core *core = &process.core;

	init(&process, &GLIBC_2_36);
	/* Too large, no whole pages, no offset from a page, other flags. */
	core_set(core, MAPPING + 8, (LENGTH + PAGE) | MMAPPED);
	core_set(core, MAPPING + 0x1008, 0x1010 | MMAPPED);
	core_set(core, MAPPING + 0x2020, 0x30);
	core_set(core, MAPPING + 0x2028, 0xfe0 | MMAPPED);
	core_set(core, MAPPING + 0x3008, PAGE | MMAPPED | IN_USE);
	process_open(&process, STAGE_HEAP);
	assert_int_equal(process_used(&process), 1);
	assert_undamaged(&process);
}

TEST(chunk_that_malloc_counts_but_nobody_finds_is_missed)
{
	_cleanup_(process_deinit) struct process process;

	init(&process, &GLIBC_2_36);
	process_map(&process, MAPPING, LENGTH / 2, 0);
	process_map(&process, MAPPING + LENGTH / 2, LENGTH / 2, 0);
	/* An overrun of the first. */
	memset(core_at(&process.core, MAPPING + LENGTH / 2, 32), 'A', 32);
	process_open(&process, STAGE_HEAP);
	assert_block(&process, MAPPING + 16, LENGTH / 2 - 16, BLOCK_USED);
	assert_incomplete(
		&process,
		"1 mmapped chunks of 131072 bytes, which malloc counts, were not found. The heap may be damaged at %#lx: the allocation below it, at %#lx of size 0x1fff0, may have been overrun",
		(unsigned long)(MAPPING + LENGTH / 2 + 8), (unsigned long)MAPPING + 16);
}

/* A program may take rights away from pages that it has from malloc. */
TEST(protected_page_is_still_the_chunk_s)
{
	_cleanup_(process_deinit) struct process process;
	struct core *core = &process.core;
	const uint64_t low = MAPPING + 0x100000, page = low + 0x10000;

	init(&process, &GLIBC_2_36);
	core_add(core, low, 0x10000, RIGHTS_RW);
	core_add_part(core, page, PAGE, 0, 0);
	core_add(core, page + PAGE, 0xf000, RIGHTS_RW);
	core_set(core, low + 8, 0x20000 | MMAPPED);
	process.mapped_count = 1;
	process.mapped_size = 0x20000;
	process_open(&process, STAGE_HEAP);
	assert_block(&process, low + 16, 0x20000 - 16, BLOCK_USED);
	assert_undamaged(&process);
}

/* A main arena that could not grow by sbrk() goes on in a mapping. */
TEST(piece_of_the_main_arena_is_found_in_a_mapping)
{
	for (size_t i = 0; i < VERSIONS; i++) {
		_cleanup_(process_deinit) struct process process;
		const uint64_t end = HEAP + HEAP_SIZE;
		uint64_t low, high;

		init(&process, versions[i]);
		process.next = HEAP + (versions[i]->counts ? 0x290 : 0x300);
		low = process_allocate(&process, 0x30);
		process_allocate(&process, end - 32 - process.next);
		core_set(&process.core, end - 32 + 8, 16 | IN_USE);
		core_set(&process.core, end - 16 + 8, 16 | IN_USE);
		process.next = MAPPING + 0x10000;
		high = process_allocate(&process, 0x30);
		process_allocate(&process, 0x1000);
		core_set(&process.core, process.next + 8,
			 (MAPPING + LENGTH - process.next) | IN_USE);
		core_set(&process.core, ARENA + versions[i]->top, process.next);
		core_set(&process.core, ARENA + versions[i]->system_memory,
			 HEAP_SIZE + LENGTH - 0x10000);
		process_open(&process, STAGE_HEAP);
		assert_block(&process, low, 0x28, BLOCK_USED);
		assert_block(&process, high, 0x28, BLOCK_USED);
		assert_block(&process, process.next + 16, MAPPING + LENGTH - process.next - 16,
			     BLOCK_FREE);
		assert_int_equal(process_used(&process), 5);
		assert_undamaged(&process);
	}
}

enum { DRIFT = 5 * 16 };

/* A mapped chunk whose bytes are counted wrong, as each realloc() of a mapping adds 16 too many. */
static void open_drifted(struct process *process, uint32_t missed)
{
	process_init(process, &GLIBC_2_43);
	process_finish(process);
	core_add(&process->core, MAPPING, LENGTH, RIGHTS_RW);
	process_map(process, MAPPING, LENGTH, 0);
	process->mapped_size += DRIFT;
	process->mapped_count += missed;
	process_open(process, STAGE_HEAP);
}

TEST(chunks_are_counted_though_their_bytes_are_counted_wrong)
{
	_cleanup_(process_deinit) struct process process;

	open_drifted(&process, 0);
	assert_undamaged(&process);
}

TEST(chunk_that_is_missed_is_so_though_bytes_are_counted_wrong)
{
	_cleanup_(process_deinit) struct process process;

	open_drifted(&process, 1);
	assert_incomplete(
		&process,
		"malloc counts 2 mmapped chunks of %d bytes, but 1 of %d bytes were found",
		(int)LENGTH + DRIFT, (int)LENGTH);
}
