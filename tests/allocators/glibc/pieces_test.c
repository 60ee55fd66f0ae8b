/*
 * A heap of several pieces: what several threads find is what one finds.
 */
#include "tests/allocators/glibc/process.h"

enum { MORE = 20 << 20, MOST_CHUNKS = 1 << 16, SMALL = 0x40 };

struct large {
	struct process process;
	uint64_t end;
	uint64_t user[MOST_CHUNKS];
	size_t count;
};

static void large_deinit(struct large *heap)
{
	process_deinit(&heap->process);
}
DEFINE_DEINIT(large_deinit, struct large)

static uint64_t add(struct large *heap, uint64_t size)
{
	assert_in_range(heap->count, 0, MOST_CHUNKS - 1);
	return heap->user[heap->count++] = process_allocate(&heap->process, size);
}

/* Chunks of many sizes, until the next would begin at or above address. */
static void fill(struct large *heap, uint64_t address)
{
	while (heap->process.next + 0x1000 <= address)
		add(heap, 0x20 + 0x10 * (heap->count * 37 % 90));
}

static void begin(struct large *heap)
{
	process_init(&heap->process, &GLIBC_2_36);
	core_add(&heap->process.core, HEAP + HEAP_SIZE, MORE, RIGHTS_RW);
	heap->end = HEAP + HEAP_SIZE + MORE;
	heap->count = 0;
}

static void finish(struct large *heap)
{
	struct process *process = &heap->process;
	struct core *core = &process->core;

	fill(heap, heap->end - 0x1000);
	core_set(core, ARENA + GLIBC_2_36.top, process->next);
	core_set(core, ARENA + GLIBC_2_36.system_memory, HEAP_SIZE + MORE);
	core_set(core, process->next + 8, (heap->end - process->next) | IN_USE);
}

/* Some are free, in each of the ways. */
static void free_some(struct large *heap)
{
	for (size_t i = 0; i + 2 < heap->count; i++) {
		uint64_t size = size_of_chunk(&heap->process, heap->user[i]);

		if (i % 211 == 3 && size <= 0x400)
			process_cache(&heap->process, heap->user[i]);
		else if (i % 13 == 5 && size <= 0x80)
			process_free_fast(&heap->process, heap->user[i]);
		else if (i % 17 == 9)
			process_free(&heap->process, heap->user[i]);
	}
}

static void assert_same(struct analysis *one, struct analysis *many)
{
	const struct allocation_index *left = analysis_index(one);
	const struct allocation_index *right = analysis_index(many);
	const struct findings *said = analysis_findings(one);
	const struct findings *also = analysis_findings(many);

	assert_int_equal(allocation_count(left), allocation_count(right));
	assert_int_equal(heap_region_count(left), heap_region_count(right));
	for (allocation_id i = 0; i < allocation_count(left); i++) {
		assert_int_equal(allocation_start(left, i), allocation_start(right, i));
		assert_int_equal(allocation_size(left, i), allocation_size(right, i));
		assert_int_equal(allocation_state(left, i), allocation_state(right, i));
	}
	assert_int_equal(said->count, also->count);
	for (size_t i = 0; i < said->count; i++)
		assert_string_equal(said->list[i].message, also->list[i].message);
}

/* Ask one thread, and so many. */
static void compare(struct large *heap, unsigned int threads)
{
	struct work_split splits[MOST_SPLITS];
	struct progress progress = { .threads = threads, .splits = splits };
	struct analysis *analysis;

	heap->process.progress.threads = 1;
	process_open(&heap->process, STAGE_HEAP);
	assert_no_error(analysis_create(heap->process.core.path, &heap->process.options, &progress,
					&analysis));
	assert_no_error(analysis_need(analysis, STAGE_HEAP));
	assert_same(heap->process.analysis, analysis);
	assert_true(progress.split_count > 0);
	assert_int_equal(splits[0].total, HEAP_SIZE + MORE);
	analysis_destroy(analysis);
}

TEST(pieces_make_the_heap_that_one_walk_finds)
{
	static struct large heap;

	begin(&heap);
	finish(&heap);
	free_some(&heap);
	compare(&heap, 5);
	assert_undamaged(&heap.process);
	large_deinit(&heap);
}

/* Words that were chunks, or look like them, precede the piece's beginning. */
TEST(row_that_is_not_met_is_not_believed)
{
	static struct large heap;

	begin(&heap);
	for (uint64_t border = 4 << 20; border < MORE; border += 4 << 20) {
		uint64_t user, size = 0x20000;

		fill(&heap, HEAP + border - 0x8000);
		user = add(&heap, size);
		for (uint64_t at = 8; at < size - 0x30; at += 0x20)
			core_set(&heap.process.core, user + at, 0x20 | IN_USE);
	}
	finish(&heap);
	compare(&heap, 4);
	assert_undamaged(&heap.process);
	large_deinit(&heap);
}

TEST(damage_is_told_as_by_one_walk)
{
	static const uint64_t bad_sizes[] = { 0, 0x38, 0x43, UINT64_MAX, 0x100001, 0x21 };
	static struct large heap;

	begin(&heap);
	finish(&heap);
	free_some(&heap);
	for (size_t i = 0; i < sizeof(bad_sizes) / sizeof(*bad_sizes); i++)
		core_set(&heap.process.core, heap.user[heap.count * (i + 1) / 7] - 8, bad_sizes[i]);
	memset(core_at(&heap.process.core, HEAP + (8 << 20) - 0x800, 0x1000), 'A', 0x1000);
	compare(&heap, 3);
	assert_true(findings_incomplete(analysis_findings(heap.process.analysis)));
	large_deinit(&heap);
}

TEST(large_chunks_are_walked_over)
{
	static struct large heap;

	begin(&heap);
	fill(&heap, HEAP + 0x10000);
	add(&heap, 9 << 20);
	fill(&heap, HEAP + (12 << 20));
	add(&heap, 5 << 20);
	finish(&heap);
	compare(&heap, 16);
	assert_undamaged(&heap.process);
	large_deinit(&heap);
}
