/*
 * Damage to the lists of free chunks: it is reported with what stands below, and no list is
 * followed for ever.
 */
#include "tests/allocators/glibc/process.h"

enum { COUNT = 6, SIZE = 0x40 };

/* Room for COUNT chunks to be freed, each behind one that stays in use. */
struct rows {
	uint64_t used[COUNT], freed[COUNT];
};

static struct rows make_rows(struct process *process, const struct glibc_version *version)
{
	struct rows rows;

	process_init(process, version);
	for (int i = 0; i < COUNT; i++) {
		rows.used[i] = process_allocate(process, 0x30);
		rows.freed[i] = process_allocate(process, SIZE);
	}
	process_allocate(process, 0x30);
	return rows;
}

static void assert_states(const struct process *process, const struct rows *rows,
			  enum block_state state)
{
	for (int i = 0; i < COUNT; i++) {
		assert_block(process, rows->used[i], 0x28, BLOCK_USED);
		assert_block(process, rows->freed[i], SIZE - 8, state);
	}
}

/* A link of the list in the memory of freed[number] is wrong; what is before that is not. */
static void assert_culprit(const struct process *process, const struct rows *rows, const char *kind,
			   int number)
{
	assert_incomplete(process, "the heap is damaged at %#lx: a link of the %s",
			  (unsigned long)rows->freed[number], kind);
	assert_incomplete(
		process,
		"is wrong there. The free block at %#lx of size 0x38 was written to after it was freed",
		(unsigned long)rows->freed[number]);
	assert_no_incomplete(process, "may have been overrun");
}

static void assert_twice(const struct process *process, uint64_t user, const char *where)
{
	assert_incomplete(
		process,
		"the heap is damaged: the free block at %#lx was freed twice, as it is in %s",
		(unsigned long)user, where);
	assert_no_incomplete(process, "may have been overrun");
	assert_no_incomplete(process, "written to after");
}

/* The list of chunks is: 5 4 3 2 1 0. */
static struct rows make_cached(struct process *process, const struct glibc_version *version)
{
	struct rows rows = make_rows(process, version);

	for (int i = 0; i < COUNT; i++)
		process_cache(process, rows.freed[i]);
	process_finish(process);
	return rows;
}

static struct rows make_fast(struct process *process, const struct glibc_version *version)
{
	struct rows rows = make_rows(process, version);

	for (int i = 0; i < COUNT; i++)
		process_free_fast(process, rows.freed[i]);
	process_finish(process);
	return rows;
}

static struct rows make_unsorted(struct process *process)
{
	struct rows rows = make_rows(process, &GLIBC_2_43);

	for (int i = 0; i < COUNT; i++)
		process_free(process, rows.freed[i]);
	process_finish(process);
	return rows;
}

static const struct glibc_version *const versions[] = {
	&GLIBC_2_31, &GLIBC_2_36, &GLIBC_2_43, /* has no fast bins */
};

TEST(overrun_link_of_a_thread_cache_is_reported)
{
	for (size_t i = 0; i < 3; i++) {
		_cleanup_(process_deinit) struct process process;
		struct rows rows = make_cached(&process, versions[i]);

		core_set(&process.core, rows.freed[3], 0x4141414141414141);
		process_open(&process, STAGE_HEAP);
		/* The key tells what the list does not. */
		assert_states(&process, &rows, BLOCK_CACHED);
		assert_culprit(&process, &rows, "thread cache", 3);
	}
}

TEST(cycle_in_a_thread_cache_is_reported)
{
	for (size_t i = 0; i < 3; i++) {
		_cleanup_(process_deinit) struct process process;
		struct rows rows = make_cached(&process, versions[i]);

		process_link(&process, rows.freed[1], rows.freed[4]);
		process_open(&process, STAGE_HEAP);
		assert_states(&process, &rows, BLOCK_CACHED);
		assert_twice(&process, rows.freed[4], "the thread cache at");
	}
}

/* 16 bytes were left of a freed chunk: too little for one by themselves. */
TEST(cache_may_stand_in_a_larger_chunk)
{
	for (size_t i = 0; i < 3; i++) {
		_cleanup_(process_deinit) struct process process;
		uint64_t user, size;

		process_init(&process, versions[i]);
		size = size_of_chunk(&process, process.cache);
		core_set(&process.core, process.cache - 8, (size + 16) | IN_USE);
		process.next += 16;
		user = process_allocate(&process, SIZE);
		process_allocate(&process, 0x30);
		process_cache(&process, user);
		process_finish(&process);
		process_open(&process, STAGE_HEAP);
		assert_block(&process, user, SIZE - 8, BLOCK_CACHED);
		assert_undamaged(&process);
	}
}

/* Here the same memory is freed twice. */
TEST(chunk_that_follows_itself_is_reported)
{
	for (size_t i = 0; i < 3; i++) {
		_cleanup_(process_deinit) struct process process;
		struct rows rows = make_cached(&process, versions[i]);

		process_link(&process, rows.freed[2], rows.freed[2]);
		process_open(&process, STAGE_HEAP);
		assert_states(&process, &rows, BLOCK_CACHED);
		assert_twice(&process, rows.freed[2], "the thread cache at");
	}
}

TEST(list_in_a_cache_may_be_shorter_than_its_count)
{
	_cleanup_(process_deinit) struct process process;
	struct rows rows = make_cached(&process, &GLIBC_2_36);

	process_link(&process, rows.freed[2], 0);
	process_open(&process, STAGE_HEAP);
	assert_states(&process, &rows, BLOCK_CACHED);
	assert_incomplete(&process, "a link of the thread cache of size 0x40");
}

TEST(overrun_link_of_a_fast_bin_is_reported)
{
	for (size_t i = 0; i < 2; i++) {
		_cleanup_(process_deinit) struct process process;
		struct rows rows = make_fast(&process, versions[i]);

		core_set(&process.core, rows.freed[3], 0x4141414141414141);
		process_open(&process, STAGE_HEAP);
		for (int j = 3; j < COUNT; j++)
			assert_block(&process, rows.freed[j], SIZE - 8, BLOCK_FREE);
		for (int j = 0; j < COUNT; j++)
			assert_block(&process, rows.used[j], 0x28, BLOCK_USED);
		assert_culprit(&process, &rows, "fast bin of size 0x40", 3);
	}
}

/* If links are mangled, they prove the chunks behind the damage. */
TEST(rest_of_a_broken_fast_bin_is_recognised)
{
	_cleanup_(process_deinit) struct process process;
	struct rows rows = make_fast(&process, &GLIBC_2_36);

	core_set(&process.core, rows.freed[3], 0x4141414141414141);
	process_open(&process, STAGE_HEAP);
	assert_states(&process, &rows, BLOCK_FREE);
}

TEST(cycle_in_a_fast_bin_is_reported)
{
	for (size_t i = 0; i < 2; i++) {
		_cleanup_(process_deinit) struct process process;
		struct rows rows = make_fast(&process, versions[i]);

		process_link(&process, rows.freed[0], chunk_of(rows.freed[4]));
		process_open(&process, STAGE_HEAP);
		assert_states(&process, &rows, BLOCK_FREE);
		assert_twice(&process, rows.freed[4], "the fast bin at");
	}
}

TEST(head_of_a_fast_bin_may_be_wrong)
{
	_cleanup_(process_deinit) struct process process;
	struct rows rows = make_rows(&process, &GLIBC_2_36);

	process_finish(&process);
	core_set(&process.core, process_fast_bin(&process, rows.freed[0]), 0x4141414141414141);
	process_open(&process, STAGE_HEAP);
	assert_states(&process, &rows, BLOCK_USED);
	assert_incomplete(&process, "the head of the fast bin of size 0x40 at %#lx is wrong",
			  (unsigned long)ARENA);
}

/*
 * A fast bin of LONG chunks, which lead all over the heap, and some in use between them, in a dump
 * larger than memory.
 */
enum { LONG = 1500, APART = 7 };

static void make_long(struct process *process, const struct glibc_version *version, uint64_t *freed)
{
	uint64_t kept = 0;

	process_init(process, version);
	process->options.memory = PAGE;
	for (int i = 0; i < LONG; i++) {
		freed[i] = process_allocate(process, 0x20);
		if (i % 100 == 0) {
			uint64_t next = process_allocate(process, 0x20);

			/* It looks like a link of another kind. */
			core_set(&process->core, next, kept);
			kept = next;
		}
	}
	process_allocate(process, 0x20);
	for (int i = 0; i < LONG; i++)
		process_free_fast(process, freed[i * APART % LONG]);
	process_finish(process);
}

TEST(long_fast_bin_of_a_large_dump_is_free)
{
	for (size_t i = 0; i < 2; i++) {
		_cleanup_(process_deinit) struct process process;
		uint64_t freed[LONG];

		make_long(&process, versions[i], freed);
		process_open(&process, STAGE_HEAP);
		for (int j = 0; j < LONG; j++)
			assert_block(&process, freed[j], 0x18, BLOCK_FREE);
		/* The cache, those between, and the last. */
		assert_int_equal(process_used(&process), 1 + LONG / 100 + 1);
		assert_undamaged(&process);
	}
}

TEST(damage_to_a_long_fast_bin_is_reported)
{
	_cleanup_(process_deinit) struct process process;
	uint64_t freed[LONG], wrong = 700 * APART % LONG;

	make_long(&process, &GLIBC_2_36, freed);
	core_set(&process.core, freed[wrong], 0x4141414141414141);
	process_open(&process, STAGE_HEAP);
	for (int j = 0; j < LONG; j++)
		assert_block(&process, freed[j], 0x18, BLOCK_FREE);
	assert_incomplete(&process,
			  "the heap is damaged at %#lx: a link of the fast bin of size 0x20",
			  (unsigned long)freed[wrong]);
}

/* It ends, and what is on it is free. */
TEST(cycle_in_a_long_fast_bin_is_reported)
{
	_cleanup_(process_deinit) struct process process;
	uint64_t freed[LONG];

	make_long(&process, &GLIBC_2_31, freed);
	process_link(&process, freed[0], chunk_of(freed[(LONG - 1) * APART % LONG]));
	process_open(&process, STAGE_HEAP);
	for (int j = 0; j < LONG; j++)
		assert_block(&process, freed[j], 0x18, BLOCK_FREE);
	assert_incomplete(&process, "a link of the fast bin of size 0x20");
}

TEST(overrun_link_of_the_unsorted_bin_is_reported)
{
	_cleanup_(process_deinit) struct process process;
	struct rows rows = make_unsorted(&process);

	core_set(&process.core, rows.freed[3], 0x4141414141414141);
	process_open(&process, STAGE_HEAP);
	assert_states(&process, &rows, BLOCK_FREE);
	assert_culprit(&process, &rows, "unsorted bin", 3);
}

/* An overrun goes upwards: the link back is hit only after the other. */
TEST(overrun_of_both_links_is_reported)
{
	_cleanup_(process_deinit) struct process process;
	struct rows rows = make_unsorted(&process);

	memset(core_at(&process.core, rows.freed[3], 16), 'A', 16);
	process_open(&process, STAGE_HEAP);
	assert_states(&process, &rows, BLOCK_FREE);
	assert_culprit(&process, &rows, "unsorted bin", 3);
}

TEST(cycle_in_the_unsorted_bin_is_reported)
{
	_cleanup_(process_deinit) struct process process;
	struct rows rows = make_unsorted(&process);

	core_set(&process.core, rows.freed[1], chunk_of(rows.freed[4]));
	process_open(&process, STAGE_HEAP);
	assert_states(&process, &rows, BLOCK_FREE);
	assert_culprit(&process, &rows, "unsorted bin", 1);
}

/* free() puts it in front of all others again. */
TEST(block_freed_twice_into_the_unsorted_bin_is_named)
{
	for (int first = 0; first < COUNT; first += COUNT - 1) {
		_cleanup_(process_deinit) struct process process;
		struct rows rows = make_unsorted(&process);

		process_free(&process, rows.freed[first]);
		process_open(&process, STAGE_HEAP);
		assert_twice(&process, rows.freed[first], "the unsorted bin at");
	}
}

TEST(block_in_lists_of_two_kinds_was_freed_twice)
{
	_cleanup_(process_deinit) struct process process;
	struct rows rows = make_rows(&process, &GLIBC_2_36);

	process_cache(&process, rows.freed[0]);
	process_free_fast(&process, rows.freed[0]);
	core_set(&process.core, rows.freed[0], rows.freed[0] >> 12); /* the ends of both lists */
	process_free(&process, rows.freed[1]);
	core_set(&process.core, process_fast_bin(&process, rows.freed[2]), chunk_of(rows.freed[0]));
	process_finish(&process);
	process_open(&process, STAGE_HEAP);
	assert_twice(&process, rows.freed[0], "a thread cache and in a fast bin");
}

/* In the list, and its next word was written to. */
TEST(cached_block_without_the_key_is_named)
{
	static const struct glibc_version *const keyed[] = { &GLIBC_2_31, &GLIBC_2_36 };

	for (size_t i = 0; i < 2; i++) {
		_cleanup_(process_deinit) struct process process;
		struct rows rows = make_cached(&process, keyed[i]);

		core_set(&process.core, rows.freed[2] + 8, 0x5454);
		process_open(&process, STAGE_HEAP);
		assert_states(&process, &rows, BLOCK_CACHED);
		assert_incomplete(
			&process,
			"the free block at %#lx was written to after it was freed, as it lacks the key",
			(unsigned long)rows.freed[2]);
	}
}

/* It was freed twice before. */
TEST(cached_block_that_was_handed_out_twice_is_named)
{
	_cleanup_(process_deinit) struct process process;
	struct rows rows = make_cached(&process, &GLIBC_2_36);
	uint64_t other = process_allocate(&process, 0x80);

	process_allocate(&process, 0x30);
	process_cache(&process, other);
	process_finish(&process);
	*(uint8_t *)core_at(&process.core, process.cache + 2 * ((0x80 - 32) / 16), 1) = 0;
	core_set(&process.core, other, 0x656e6f);
	process_open(&process, STAGE_HEAP);
	assert_states(&process, &rows, BLOCK_CACHED);
	assert_block(&process, other, 0x78, BLOCK_USED);
	assert_incomplete(&process, "the block at %#lx was handed out twice, or was written to",
			  (unsigned long)other);
}

/* A block was written to while it was free, and then handed out: its link became the head. */
TEST(cache_with_one_wrong_head_is_still_a_cache)
{
	_cleanup_(process_deinit) struct process process;
	struct rows rows = make_cached(&process, &GLIBC_2_36);
	uint64_t entries = process.cache + 64 * 2;

	core_set(&process.core, entries + ((0x80 - 32) / 16) * 8, 0x414141442128a283);
	process_open(&process, STAGE_HEAP);
	assert_states(&process, &rows, BLOCK_CACHED);
	assert_incomplete(&process, "the head of the thread cache of size 0x80 at %#lx is wrong",
			  (unsigned long)process.cache);
}

/* A thread ends the list before it counts. */
TEST(cached_block_that_is_not_counted_yet_is_free)
{
	_cleanup_(process_deinit) struct process process;
	struct rows rows = make_cached(&process, &GLIBC_2_36);
	uint64_t other = process_allocate(&process, 0x80);

	process_allocate(&process, 0x30);
	process_cache(&process, other);
	process_finish(&process);
	*(uint8_t *)core_at(&process.core, process.cache + 2 * ((0x80 - 32) / 16), 1) = 0;
	process_open(&process, STAGE_HEAP);
	assert_states(&process, &rows, BLOCK_CACHED);
	assert_block(&process, other, 0x78, BLOCK_CACHED);
	assert_undamaged(&process);
}

/* The header of a member, whose link is as it was. */
TEST(header_of_a_cached_block_was_overrun_from_below)
{
	_cleanup_(process_deinit) struct process process;
	struct rows rows = make_cached(&process, &GLIBC_2_36);

	core_set(&process.core, rows.freed[3] - 8, 0x4141414141414141);
	process_open(&process, STAGE_HEAP);
	assert_incomplete(
		&process,
		"the header of the free block at %#lx, which the thread cache at %#lx has, is overwritten. The allocation below it, at %#lx",
		(unsigned long)rows.freed[3], (unsigned long)process.cache,
		(unsigned long)rows.used[3]);
	assert_no_incomplete(&process, "written to after");
}

TEST(foot_of_a_free_block_was_written_to)
{
	_cleanup_(process_deinit) struct process process;
	struct rows rows = make_unsorted(&process);

	core_set(&process.core, chunk_of(rows.freed[3]) + SIZE, 0x4343434343434343);
	process_open(&process, STAGE_HEAP);
	assert_states(&process, &rows, BLOCK_FREE);
	assert_incomplete(
		&process,
		"the free block at %#lx of size 0x38 was written to after it was freed, at its end: the copy of its chunk's size there (prev_size) is 0x4343434343434343 instead of 0x40",
		(unsigned long)rows.freed[3]);
}

/* A string that was one character too long. */
TEST(used_block_that_is_called_free_was_overrun)
{
	_cleanup_(process_deinit) struct process process;
	struct rows rows = make_unsorted(&process);

	core_set(&process.core, rows.freed[4] - 8, SIZE); /* used[4] is below */
	core_set(&process.core, chunk_of(rows.freed[4]), 0x2222222222222222);
	process_open(&process, STAGE_HEAP);
	assert_block(&process, rows.used[4], 0x28, BLOCK_USED);
	assert_incomplete(
		&process,
		"the header there says that the block below it, at %#lx of size 0x28, is free, and no list has it",
		(unsigned long)rows.used[4]);
}

/* Both links, and the copy of its size. */
TEST(free_block_that_was_filled_stays_free)
{
	_cleanup_(process_deinit) struct process process;
	struct rows rows = make_unsorted(&process);

	memset(core_at(&process.core, rows.freed[3], SIZE - 8), 'F', SIZE - 8);
	process_open(&process, STAGE_HEAP);
	assert_states(&process, &rows, BLOCK_FREE);
	assert_culprit(&process, &rows, "unsorted bin", 3);
	assert_no_incomplete(&process, "no list has it");
}

/* The links of large chunks of several sizes to each other. */
TEST(link_to_another_size_was_written_to)
{
	enum { SIZES = 3 };

	for (int wrong = 0; wrong < 3; wrong++) {
		_cleanup_(process_deinit) struct process process;
		uint64_t users[SIZES];

		process_init(&process, &GLIBC_2_36);
		for (uint64_t i = 0; i < SIZES; i++) {
			users[i] = process_allocate(&process, 0x410 + 16 * i);
			process_allocate(&process, 0x30);
		}
		for (int i = 0; i < SIZES; i++)
			process_free_into(&process, users[i], 64);
		for (int i = 0; i < SIZES; i++) {
			core_set(&process.core, users[i] + 16, chunk_of(users[(i + 1) % SIZES]));
			core_set(&process.core, users[(i + 1) % SIZES] + 24, chunk_of(users[i]));
		}
		process_finish(&process);
		if (wrong == 1)
			core_set(&process.core, users[1] + 16, 0x4c4c4c4c4c4c4c4c);
		if (wrong == 2)
			memset(core_at(&process.core, users[1] + 16, 16), 0, 16);
		process_open(&process, STAGE_HEAP);
		if (wrong == 0)
			assert_undamaged(&process);
		else
			assert_incomplete(
				&process,
				"The free block at %#lx of size 0x418 was written to after it was freed",
				(unsigned long)users[1]);
	}
}

/* It closes, links back and forth, and never comes by its bin. */
TEST(ring_beside_the_unsorted_bin_is_reported)
{
	_cleanup_(process_deinit) struct process process;
	struct rows rows = make_unsorted(&process);
	struct core *core = &process.core;

	for (int i = 0; i < 4; i++) {
		uint64_t next = rows.freed[(i + 1) % 4];

		core_set(core, rows.freed[i], chunk_of(next));
		core_set(core, next + 8, chunk_of(rows.freed[i]));
	}
	core_set(core, ARENA + GLIBC_2_43.bins, chunk_of(rows.freed[0]));
	process_open(&process, STAGE_HEAP);
	assert_states(&process, &rows, BLOCK_FREE);
	assert_true(findings_incomplete(analysis_findings(process.analysis)));
}

/* The targets of words in a thread's frames do not become its cache. */
TEST(cache_is_that_of_the_thread_whose_variable_says_so)
{
	const uint64_t other_tls = TLS - 0x10000, other = other_tls + 0x100;
	const struct user_regs_struct registers = { .rsp = STACK + 0x800, .fs_base = other };
	_cleanup_(process_deinit) struct process process;
	struct core *core = &process.core;
	uint64_t user;
	char text[128];

	process_init(&process, &GLIBC_2_36);
	process.cache = process_allocate(&process, 0x290);
	core_add(core, other_tls, PAGE, RIGHTS_RW);
	core_set(core, other - 0x40, process.cache);
	core_set(core, other, other);
	core_set(core, TLS + 0x100, process.cache);
	core_add_thread(core, 12, &registers);
	user = process_allocate(&process, SIZE);
	process_allocate(&process, 0x30);
	process_cache(&process, user);
	process_finish(&process);
	process_open(&process, STAGE_HEAP);
	assert_block(&process, user, SIZE - 8, BLOCK_CACHED);
	assert_true(heaps_tell(analysis_heaps(process.analysis), user, text, sizeof(text)));
	assert_non_null(strstr(text, "of thread 12"));
	assert_undamaged(&process);
}

/* Members of a cache whose thread's memory is not in the core. */
TEST(cache_is_found_without_its_thread)
{
	for (size_t i = 0; i < 3; i++) {
		_cleanup_(process_deinit) struct process process;
		struct rows rows = make_cached(&process, versions[i]);

		core_set(&process.core, THREAD_POINTER - 0x40, 0);
		process_open(&process, STAGE_HEAP);
		assert_states(&process, &rows, BLOCK_CACHED);
		assert_undamaged(&process);
	}
}

/* A block of the cache's size with numbers in it is none. */
TEST(memory_as_large_as_a_cache_is_none)
{
	_cleanup_(process_deinit) struct process process;
	struct rows rows = make_rows(&process, &GLIBC_2_36);
	uint64_t user = process_allocate(&process, 0x290);

	for (uint64_t i = 0; i < 0x280; i += 8)
		core_set(&process.core, user + i, rows.used[0] + i);
	process_finish(&process);
	process_open(&process, STAGE_HEAP);
	assert_states(&process, &rows, BLOCK_USED);
	assert_block(&process, user, 0x288, BLOCK_USED);
	assert_undamaged(&process);
}
