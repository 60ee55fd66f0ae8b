/*
 * Damage to the headers of chunks: what is around it is still walked.
 */
#include "tests/allocators/glibc/process.h"

enum { COUNT = 24, SIZE = 0x40 };

/* COUNT chunks in a row; their memory goes to user[]. */
static void make_row(struct process *process, uint64_t *user)
{
	process_init(process, &GLIBC_2_36);
	for (int i = 0; i < COUNT; i++)
		user[i] = process_allocate(process, SIZE);
}

/* All but those from the first lost on, up to the next valid one, are used. */
static void assert_row(const struct process *process, const uint64_t *user, int first_lost,
		       int next)
{
	for (int i = 0; i < COUNT; i++)
		if (i < first_lost || i >= next)
			assert_block(process, user[i], SIZE - 8, BLOCK_USED);
		else
			assert_int_equal(process_find(process, user[i]), NO_ALLOCATION);
}

TEST(chunk_with_a_bad_size_is_skipped)
{
	static const uint64_t bad_sizes[] = {
		0, 0x4141414141414141, 0x1000001, 0x38, 0x43, UINT64_MAX,
	};

	for (size_t i = 0; i < sizeof(bad_sizes) / sizeof(*bad_sizes); i++) {
		_cleanup_(process_deinit) struct process process;
		uint64_t user[COUNT];

		make_row(&process, user);
		core_set(&process.core, user[10] - 8, bad_sizes[i]);
		process_finish(&process);
		process_open(&process, STAGE_HEAP);
		assert_row(&process, user, 10, 11);
		assert_incomplete(
			&process,
			"the heap is damaged at %#lx: that is no header of a chunk. The allocation below it, at %#lx of size 0x38, may have been overrun. 64 bytes are skipped",
			(unsigned long)user[10] - 8, (unsigned long)user[9]);
		/* Nothing is said but that. */
		assert_int_equal(analysis_findings(process.analysis)->count, 1);
	}
}

/* Text that runs over several chunks. */
TEST(walk_goes_on_behind_a_long_overrun)
{
	_cleanup_(process_deinit) struct process process;
	uint64_t user[COUNT];

	make_row(&process, user);
	memset(core_at(&process.core, user[5], 3 * SIZE), 'A', 3 * SIZE);
	process_finish(&process);
	process_open(&process, STAGE_HEAP);
	assert_row(&process, user, 6, 9);
	assert_incomplete(&process, "192 bytes are skipped");
}

/* A size that is plausible, but leads into the middle of another chunk. */
TEST(size_that_leads_astray_costs_a_few_chunks)
{
	_cleanup_(process_deinit) struct process process;
	uint64_t user[COUNT];

	make_row(&process, user);
	core_set(&process.core, user[10] - 8, 2 * SIZE + 0x20 + IN_USE);
	process_finish(&process);
	process_open(&process, STAGE_HEAP);
	for (int i = 0; i < COUNT; i++)
		if (i < 10 || i > 12)
			assert_block(&process, user[i], SIZE - 8, BLOCK_USED);
	assert_true(findings_incomplete(analysis_findings(process.analysis)));
}

TEST(first_chunk_of_the_heap_may_be_damaged)
{
	_cleanup_(process_deinit) struct process process;
	uint64_t user[COUNT];

	make_row(&process, user);
	process_finish(&process);
	core_set(&process.core, process.cache - 8, 0x4141414141414141);
	process_open(&process, STAGE_HEAP);
	assert_true(findings_incomplete(analysis_findings(process.analysis)));
	assert_row(&process, user, COUNT, COUNT);
}

/* Behind the damage is a chunk that a list names, and no long row. */
TEST(chunk_on_a_list_vouches_for_itself)
{
	_cleanup_(process_deinit) struct process process;
	uint64_t user[COUNT];

	make_row(&process, user);
	process_cache(&process, user[12]);
	core_set(&process.core, user[10] - 8, 0x4141414141414141);
	memset(core_at(&process.core, user[14], SIZE), 'A', SIZE);
	process_finish(&process);
	process_open(&process, STAGE_HEAP);
	assert_block(&process, user[12], SIZE - 8, BLOCK_CACHED);
	assert_block(&process, user[13], SIZE - 8, BLOCK_USED);
	assert_block(&process, user[14], SIZE - 8, BLOCK_USED);
	assert_block(&process, user[16], SIZE - 8, BLOCK_USED);
	assert_int_equal(process_find(&process, user[10]), NO_ALLOCATION);
	assert_int_equal(process_find(&process, user[15]), NO_ALLOCATION);
}

/* Nobody knows what was in it, so nothing leaks because of it. */
TEST(what_is_skipped_counts_as_a_reference)
{
	_cleanup_(process_deinit) struct process process;
	uint64_t user[COUNT];

	make_row(&process, user);
	core_set(&process.core, user[10] + 8, user[20]);
	core_set(&process.core, user[10] - 8, 0x4141414141414141);
	process_finish(&process);
	process_open(&process, STAGE_REACHABILITY);
	assert_false(
		bitmap_get(analysis_leaked(process.analysis), process_find(&process, user[20])));
	assert_true(
		bitmap_get(analysis_leaked(process.analysis), process_find(&process, user[21])));
}

TEST(overrun_into_top_loses_nothing)
{
	static const uint64_t bad_sizes[] = {
		0, 0x4141414141414141, UINT64_MAX, 0x21, 0x10001,
	};

	for (size_t i = 0; i < sizeof(bad_sizes) / sizeof(*bad_sizes); i++) {
		_cleanup_(process_deinit) struct process process;
		uint64_t user[COUNT];

		make_row(&process, user);
		process_finish(&process);
		core_set(&process.core, process.next + 8, bad_sizes[i]);
		process_open(&process, STAGE_HEAP);
		assert_row(&process, user, COUNT, COUNT);
		assert_int_equal(process_used(&process), COUNT + 1);
		assert_block(&process, process.next + 16, HEAP + HEAP_SIZE - process.next - 16,
			     BLOCK_FREE);
		assert_incomplete(
			&process,
			"the heap is damaged at %#lx: the size of its free end (top) is %#lx. The allocation below it, at %#lx of size 0x38, may have been overrun",
			(unsigned long)process.next + 8, (unsigned long)bad_sizes[i],
			(unsigned long)user[COUNT - 1]);
	}
}

/*
 * A debugger leaves out the heap's end if nothing was written there: top and the count of the arena
 * agree on it, and the core has no memory there. If one of these is not so, top is damaged.
 */
TEST(end_that_was_never_written_is_no_damage)
{
	static const struct {
		uint64_t top, counted; /* pages beyond what the core has */
		uint64_t overrun;      /* the value written over top's size, or 0 */
		bool has_memory, is_valid;
	} cases[] = {
		{ 1, 1, 0, false, true },
		{ 5, 5, 0, false, true },
		{ 1, 1, 0x4141414141414141, false },
		{ 1, 1, 0x21, false },
		{ 2, 1, 0, false },
		{ 1, 2, 0, false },
		{ 1, 0, 0, false },
		{ 1, 1, 0, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_(process_deinit) struct process process;
		uint64_t user[COUNT], size, place;

		make_row(&process, user);
		process_finish(&process);
		place = process.next + 8;
		size = HEAP + HEAP_SIZE + cases[i].top * PAGE - process.next;
		core_set(&process.core, place, cases[i].overrun ? cases[i].overrun : size | IN_USE);
		core_set(&process.core, ARENA + process.version->system_memory,
			 HEAP_SIZE + cases[i].counted * PAGE);
		if (cases[i].has_memory) {
			core_add(&process.core, HEAP + HEAP_SIZE, PAGE, RIGHT_READ);
			core_add_file(&process.core, HEAP + HEAP_SIZE, HEAP + HEAP_SIZE + PAGE, 0,
				      "/lib/libother.so");
		}
		process_open(&process, STAGE_HEAP);
		assert_row(&process, user, COUNT, COUNT);
		if (cases[i].is_valid)
			assert_false(findings_incomplete(analysis_findings(process.analysis)));
		else
			assert_incomplete(
				&process,
				"the heap is damaged at %#lx: the size of its free end (top) is",
				(unsigned long)place);
	}
}

/* The arena's size is damaged, too: it ends within the page of top. */
TEST(top_may_be_damaged_along_with_its_arena)
{
	_cleanup_(process_deinit) struct process process;
	uint64_t user[COUNT];

	make_row(&process, user);
	process_finish(&process);
	core_set(&process.core, process.next + 8, 0x4141414141414141);
	core_set(&process.core, ARENA + GLIBC_2_36.system_memory, process.next - HEAP + 0x20);
	process_open(&process, STAGE_HEAP);
	assert_row(&process, user, COUNT, COUNT);
	assert_true(findings_incomplete(analysis_findings(process.analysis)));
}

/* Here top points outside of the heap. */
TEST(heap_without_its_top_is_walked)
{
	_cleanup_(process_deinit) struct process process;
	uint64_t user[COUNT];

	make_row(&process, user);
	process_finish(&process);
	core_set(&process.core, ARENA + GLIBC_2_36.top, 0x4141414141414140);
	process_open(&process, STAGE_HEAP);
	assert_row(&process, user, COUNT, COUNT);
	assert_true(findings_incomplete(analysis_findings(process.analysis)));
}

TEST(somebody_else_s_sbrk_is_fenced_and_a_root)
{
	_cleanup_(process_deinit) struct process process;
	uint64_t below, above, foreign;

	process_init(&process, &GLIBC_2_36);
	below = process_allocate(&process, SIZE);
	process_allocate(&process, 0x10);
	process_allocate(&process, 0x10);
	foreign = process.next;
	process.next += 0x1000;
	above = process_allocate(&process, SIZE);
	core_set(&process.core, foreign + 0x800, above);
	process_finish(&process);
	core_set(&process.core, ARENA + GLIBC_2_36.system_memory, HEAP_SIZE - 0x1000);
	process_open(&process, STAGE_REACHABILITY);
	assert_block(&process, below, SIZE - 8, BLOCK_USED);
	assert_block(&process, above, SIZE - 8, BLOCK_USED);
	assert_int_equal(process_used(&process), 3);
	assert_null(heap_region_find(analysis_index(process.analysis), foreign + 0x800));
	assert_true(bitmap_get(analysis_anchored(process.analysis), process_find(&process, above)));
	assert_undamaged(&process);
}

/* A program may take rights away from pages that it has from malloc. */
TEST(protected_page_in_the_heap_does_not_end_it)
{
	_cleanup_(process_deinit) struct process process;
	struct core *core = &process.core;
	const uint64_t page = HEAP + HEAP_SIZE;
	uint64_t guarded, above;

	process_init(&process, &GLIBC_2_36);
	/* The page in the middle of this chunk is a mapping of its own. */
	core_add(core, page, PAGE, RIGHT_READ);
	core_add(core, page + PAGE, 0x10000, RIGHTS_RW);
	process_allocate(&process, HEAP_SIZE - 0x290 - 0x1000);
	guarded = process_allocate(&process, 0x3000);
	above = process_allocate(&process, SIZE);
	core_set(core, ARENA + GLIBC_2_36.top, process.next);
	core_set(core, ARENA + GLIBC_2_36.system_memory, 0x21000);
	core_set(core, process.next + 8, HEAP + 0x21000 - process.next + 1);
	process_open(&process, STAGE_HEAP);
	assert_block(&process, guarded, 0x2ff8, BLOCK_USED);
	assert_block(&process, above, SIZE - 8, BLOCK_USED);
	assert_undamaged(&process);
}

/* Headers alone tell of most chunks, lists of some, and links of others. */
TEST(states_are_told_in_any_mix)
{
	enum { MANY = 1400, SMALL = 0x20 };
	_cleanup_(process_deinit) struct process process;
	uint64_t user[MANY];

	process_init(&process, &GLIBC_2_36);
	for (int i = 0; i < MANY; i++)
		user[i] = process_allocate(&process, SMALL);
	process_finish(&process);
	for (int i = 0; i < MANY; i++)
		if (i % 97 == 13)
			process_cache(&process, user[i]);
		else if (i % 41 == 7)
			process_free_fast(&process, user[i]);
		else if (i % 67 == 3)
			process_free(&process, user[i]);
	process_open(&process, STAGE_HEAP);
	for (int i = 0; i < MANY; i++)
		assert_block(&process, user[i], SMALL - 8,
			     i % 97 == 13		  ? BLOCK_CACHED
			     : i % 41 == 7 || i % 67 == 3 ? BLOCK_FREE
							  : BLOCK_USED);
	assert_undamaged(&process);
}

/* Or it would not be known when it ends. */
TEST(progress_is_told_of_all_that_is_walked)
{
	enum { MORE = 4 << 20 };
	_cleanup_(process_deinit) struct process process;
	struct core *core = &process.core;
	uint64_t end = HEAP + HEAP_SIZE + MORE, done;

	process_init(&process, &GLIBC_2_36);
	core_add(core, HEAP + HEAP_SIZE, MORE, RIGHTS_RW);
	while (end - process.next >= 2 * SIZE)
		process_allocate(&process, SIZE);
	core_set(core, ARENA + GLIBC_2_36.top, process.next);
	core_set(core, ARENA + GLIBC_2_36.system_memory, HEAP_SIZE + MORE);
	core_set(core, process.next + 8, (end - process.next) | IN_USE);
	process_open(&process, STAGE_HEAP);
	done = atomic_load(&process.progress.done);
	/* There are a few pages beside the heap. */
	assert_in_range(done, MORE / 2, HEAP_SIZE + MORE + 4 * PAGE);
	assert_undamaged(&process);
}

/* As glibc.mem.tagging of aarch64 makes malloc do it. */
TEST(where_memory_has_tags_blocks_end_with_their_chunks)
{
	static const uint64_t MAPPED = 0x7e1000000000, PIECE = 0x21000;
	static const struct glibc_version *const versions[] = { &GLIBC_2_36, &GLIBC_2_43 };
	const struct note_range heap = { HEAP, HEAP + HEAP_SIZE };

	for (size_t i = 0; i < 2; i++) {
		_cleanup_(process_deinit) struct process process;
		uint64_t used, cached, freed, mapped;
		struct image *image;

		process_init(&process, versions[i]);
		used = process_allocate(&process, SIZE);
		cached = process_allocate(&process, SIZE);
		freed = process_allocate(&process, SIZE);
		process_allocate(&process, SIZE);
		process_finish(&process);
		process_cache(&process, cached);
		process_free(&process, freed);
		core_add(&process.core, MAPPED, PIECE, RIGHTS_RW);
		mapped = process_map(&process, MAPPED, PIECE, 0);
		process_open(&process, STAGE_IMAGE);
		image = (struct image *)analysis_image(process.analysis);
		image->tagged = malloc(sizeof(heap));
		assert_non_null(image->tagged);
		*image->tagged = heap;
		image->tagged_count = 1;
		assert_no_error(analysis_need(process.analysis, STAGE_HEAP));
		assert_block(&process, used, SIZE - 16, BLOCK_USED);
		assert_block(&process, cached, SIZE - 16, BLOCK_CACHED);
		assert_block(&process, freed, SIZE - 16, BLOCK_FREE);
		assert_block(&process, mapped, PIECE - 16 - versions[i]->map_tail, BLOCK_USED);
		assert_undamaged(&process);
	}
}
