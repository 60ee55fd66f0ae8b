/*
 * The arenas of other threads, and a ring of arenas that makes no sense.
 */
#include "tests/allocators/glibc/process.h"

static const struct glibc_version *const versions[] = {
	&GLIBC_2_11, &GLIBC_2_19, &GLIBC_2_25, &GLIBC_2_31, &GLIBC_2_36, &GLIBC_2_43,
};

enum { VERSIONS = sizeof(versions) / sizeof(versions[0]) };

/* Heaps of other arenas begin at multiples of 64 MiB. */
static const uint64_t SUBHEAP = 0x7c0000000000, SUBHEAP_SIZE = 0x21000,
		      SECOND = SUBHEAP + (64 << 20), MAPPING_WITH_BINS = 0x7d0000000800;

/* The heap's head, which names its arena and the heap before it. */
static void add_subheap(struct process *process, uint64_t start, uint64_t arena, uint64_t previous)
{
	core_add(&process->core, start, SUBHEAP_SIZE, RIGHTS_RW);
	core_set(&process->core, start, arena);
	core_set(&process->core, start + 8, previous);
	core_set(&process->core, start + 16, SUBHEAP_SIZE);
	core_set(&process->core, start + 24, SUBHEAP_SIZE);
}

static uint64_t add_chunk(struct process *process, uint64_t *next, uint64_t size)
{
	uint64_t user = *next + 16;

	core_set(&process->core, user - 8, size | IN_USE | OTHER_ARENA);
	*next += size;
	return user;
}

/* The rest of the arena's heap is top. */
static void finish_subheap(struct process *process, uint64_t arena, uint64_t next, uint64_t end,
			   uint64_t system_memory)
{
	core_set(&process->core, arena + process->version->top, next);
	core_set(&process->core, arena + process->version->system_memory, system_memory);
	core_set(&process->core, next + 8, (end - next) | IN_USE);
}

/* An arena in a heap of its own; *next is where its chunks begin. */
static uint64_t add_arena(struct process *process, uint64_t start, uint64_t *next)
{
	uint64_t arena = start + process->version->subheap_head;

	add_subheap(process, start, arena, 0);
	process_add_arena(process, arena, ARENA);
	core_set(&process->core, ARENA + process->version->next, arena);
	*next = (arena + process->version->size + 15) & ~UINT64_C(15);
	return arena;
}

TEST(chunks_of_another_arena_are_walked)
{
	for (size_t i = 0; i < VERSIONS; i++) {
		_cleanup_(process_deinit) struct process process;
		uint64_t arena, next, first, last;

		process_init(&process, versions[i]);
		process_finish(&process);
		arena = add_arena(&process, SUBHEAP, &next);
		first = add_chunk(&process, &next, 0x30);
		last = add_chunk(&process, &next, 0x1000);
		finish_subheap(&process, arena, next, SUBHEAP + SUBHEAP_SIZE, SUBHEAP_SIZE);
		process_open(&process, STAGE_HEAP);
		assert_block(&process, first, 0x28, BLOCK_USED);
		assert_block(&process, last, 0xff8, BLOCK_USED);
		assert_int_equal(process_used(&process), 3);
		assert_int_equal(heaps_arena(analysis_heaps(process.analysis), 1).address, arena);
		assert_undamaged(&process);
	}
}

TEST(arena_s_heap_is_no_root)
{
	_cleanup_(process_deinit) struct process process;
	uint64_t arena, next, first, last;

	process_init(&process, &GLIBC_2_36);
	process_finish(&process);
	arena = add_arena(&process, SUBHEAP, &next);
	first = add_chunk(&process, &next, 0x30);
	last = add_chunk(&process, &next, 0x30);
	core_set(&process.core, first, last);
	/* The arena's mutex, and the rest of its free end. */
	core_set(&process.core, arena + 8, first);
	core_set(&process.core, next + 0x100, first);
	finish_subheap(&process, arena, next, SUBHEAP + SUBHEAP_SIZE, SUBHEAP_SIZE);
	process_open(&process, STAGE_LEAKS);
	assert_int_equal(analysis_leaks(process.analysis)->count, 1);
	assert_int_equal(analysis_leaks(process.analysis)->roots[0].owned_count, 2);
}

/* A full heap ends with a fence, and the arena goes on in another one. */
TEST(arena_may_have_several_heaps)
{
	for (size_t i = 0; i < VERSIONS; i++) {
		_cleanup_(process_deinit) struct process process;
		const uint64_t end = SUBHEAP + SUBHEAP_SIZE;
		uint64_t arena, next, full, user;

		process_init(&process, versions[i]);
		process_finish(&process);
		arena = add_arena(&process, SUBHEAP, &next);
		full = add_chunk(&process, &next, end - 32 - next);
		core_set(&process.core, end - 32 + 8, 16 | IN_USE);
		core_set(&process.core, end - 16 + 8, 0 | IN_USE);
		add_subheap(&process, SECOND, arena, SUBHEAP);
		next = SECOND + versions[i]->subheap_head;
		user = add_chunk(&process, &next, 0x30);
		finish_subheap(&process, arena, next, SECOND + SUBHEAP_SIZE, 2 * SUBHEAP_SIZE);
		process_open(&process, STAGE_HEAP);
		assert_block(&process, full, end - 32 - full + 8, BLOCK_USED);
		assert_block(&process, user, 0x28, BLOCK_USED);
		assert_int_equal(process_used(&process), 3);
		assert_undamaged(&process);
	}
}

TEST(arena_without_its_heap_is_reported)
{
	_cleanup_(process_deinit) struct process process;
	uint64_t arena, next;

	process_init(&process, &GLIBC_2_36);
	process_finish(&process);
	arena = add_arena(&process, SUBHEAP, &next);
	finish_subheap(&process, arena, next, SUBHEAP + SUBHEAP_SIZE, SUBHEAP_SIZE);
	/* The head is damaged. */
	core_set(&process.core, SUBHEAP, 0);
	core_set(&process.core, SUBHEAP + 16, 0);
	process_open(&process, STAGE_HEAP);
	assert_true(findings_incomplete(analysis_findings(process.analysis)));
}

TEST(ring_of_arenas_that_leads_nowhere_is_reported)
{
	for (size_t i = 0; i < VERSIONS; i++) {
		_cleanup_(process_deinit) struct process process;
		uint64_t user;

		process_init(&process, versions[i]);
		user = process_allocate(&process, 0x30);
		process_finish(&process);
		core_set(&process.core, ARENA + versions[i]->next, 0x4141414141414140);
		process_open(&process, STAGE_HEAP);
		assert_block(&process, user, 0x28, BLOCK_USED);
		assert_incomplete(&process, "found by their shape");
	}
}

/* It leads into a ring that the main arena is not in. */
TEST(ring_of_arenas_may_close_too_early)
{
	for (size_t i = 0; i < VERSIONS; i++) {
		_cleanup_(process_deinit) struct process process;
		uint64_t first, second, next;

		process_init(&process, versions[i]);
		process_allocate(&process, 0x30);
		process_finish(&process);
		first = add_arena(&process, SUBHEAP, &next);
		finish_subheap(&process, first, next, SUBHEAP + SUBHEAP_SIZE, SUBHEAP_SIZE);
		second = add_arena(&process, SECOND, &next);
		finish_subheap(&process, second, next, SECOND + SUBHEAP_SIZE, SUBHEAP_SIZE);
		core_set(&process.core, second + versions[i]->next, first);
		core_set(&process.core, first + versions[i]->next, second);
		process_open(&process, STAGE_HEAP);
		assert_true(findings_incomplete(analysis_findings(process.analysis)));
	}
}

/* The memory below the bins, where the arena should begin, is not there. */
TEST(arena_may_begin_before_its_memory)
{
	for (uint64_t cut = 0; cut <= 112; cut += 8) {
		_cleanup_(process_deinit) struct process process;
		const uint64_t start = MAPPING_WITH_BINS - 112 + cut;

		process_init(&process, &GLIBC_2_36);
		process_finish(&process);
		core_add(&process.core, start, PAGE, RIGHTS_RW);
		core_add_file(&process.core, start, start + PAGE, PAGE, "/lib/libother.so");
		process_add_arena(&process, MAPPING_WITH_BINS - 112, MAPPING_WITH_BINS - 112);
		process_open(&process, STAGE_HEAP);
		assert_block(&process, process.cache, 0x288, BLOCK_USED);
	}
}
