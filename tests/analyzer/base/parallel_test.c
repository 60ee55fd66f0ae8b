#include "analyzer/base/parallel.h"

#include "tests/assertions.h"

#include <sched.h>
#include <stdatomic.h>

enum { CHUNKS = 1000, THREADS = 4 };

struct loop {
	atomic_uint seen[CHUNKS];
	atomic_uint inside[THREADS]; /* how often a thread is in a chunk */
	atomic_uint chunks;
	size_t bad_from; /* chunks from this one on fail */
};

static struct error *work(void *data, size_t chunk, unsigned int thread)
{
	struct loop *loop = data;

	if (chunk >= CHUNKS || thread >= THREADS)
		return error_create(ERROR_USAGE, "out of range");
	if (atomic_fetch_add(&loop->inside[thread], 1) != 0)
		return error_create(ERROR_USAGE, "a thread is there twice");
	atomic_fetch_add(&loop->seen[chunk], 1);
	atomic_fetch_add(&loop->chunks, 1);
	sched_yield();
	atomic_fetch_sub(&loop->inside[thread], 1);
	if (chunk >= loop->bad_from)
		return error_create(ERROR_BAD_DUMP, "chunk is bad");
	return NULL;
}

TEST(every_chunk_is_taken_once)
{
	for (unsigned int threads = 1; threads <= THREADS; threads++) {
		struct loop loop = { .bad_from = CHUNKS };

		assert_no_error(parallel_for(CHUNKS, threads, work, &loop));
		for (size_t i = 0; i < CHUNKS; i++)
			assert_int_equal(loop.seen[i], 1);
	}
}

TEST(loop_without_chunks_does_nothing)
{
	struct loop loop = { .bad_from = 0 };

	assert_no_error(parallel_for(0, THREADS, work, &loop));
	assert_int_equal(loop.chunks, 0);
}

/* One of many errors is returned; the others must not leak. */
TEST(error_ends_the_loop)
{
	struct loop loop = { .bad_from = 10 };

	assert_error(parallel_for(CHUNKS, THREADS, work, &loop), ERROR_BAD_DUMP, "chunk is bad");
	assert_true(loop.chunks >= 11);
	assert_true(loop.chunks <= 10 + THREADS);
}

TEST(more_threads_than_chunks_are_harmless)
{
	struct loop loop = { .bad_from = CHUNKS };

	assert_no_error(parallel_for(1, THREADS, work, &loop));
	assert_int_equal(loop.chunks, 1);
}

TEST(process_that_may_use_one_processor_has_one_thread)
{
	cpu_set_t before, one;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(parallel_threads(), CPU_COUNT(&before));
	CPU_ZERO(&one);
	for (int i = 0; CPU_COUNT(&one) == 0; i++)
		if (CPU_ISSET(i, &before))
			CPU_SET(i, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(parallel_threads(), 1);
	sched_setaffinity(0, sizeof(before), &before);
}

TEST(even_split_depends_on_the_chunks_alone)
{
	static const uint64_t AMOUNTS[] = { 5, 1, 1, 1, 4, 1, 9 };
	enum { AMOUNT_COUNT = sizeof(AMOUNTS) / sizeof(*AMOUNTS) };
	struct work_split split = { 0 };
	struct progress progress = { .task = "testing", .splits = &split };
	struct split_work work;

	split_work_begin(&work, &progress, AMOUNT_COUNT);
	for (size_t i = AMOUNT_COUNT; i-- > 0;)
		assert_true(split_work_step(&work, i, i % 3 == 0, &progress, AMOUNTS[i]));
	split_work_keep(&work, 3, &progress);
	assert_int_equal(progress.split_count, 1);
	assert_int_equal(split.threads, 2);
	assert_int_equal(split.total, 22);
	assert_int_equal(split.most, 15);
	assert_int_equal(split.largest, 9);
	/* One has 5; one 1, 1, 1 and 9; one 1 and 4. */
	assert_int_equal(split.even, 12);
}
