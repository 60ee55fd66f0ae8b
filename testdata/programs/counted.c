/*
 * Free blocks of every kind, in several arenas, and what malloc itself says of them: mallinfo2()
 * and malloc_info(), written down when all threads rest, to the file of the truth with ".malloc"
 * behind its name.
 */

#include "truth.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 3, BLOCKS = 600, LARGE = 40, MAPPED = 3 };

static void *volatile held[THREADS + 1][BLOCKS + LARGE];
static void *volatile mapped[MAPPED];
static atomic_int started;
static FILE *report;
static char buffer[1 << 18];

/* Open it, and have all memory that it takes, before anything is counted. */
static void open_report(void)
{
	const char *truth = getenv("HEAPCORE_TRUTH");
	char path[4096];

	if (!truth)
		return;
	snprintf(path, sizeof(path), "%s.malloc", truth);
	report = fopen(path, "w");
	if (!report)
		truth_fail("open the report");
	setvbuf(report, buffer, _IOFBF, sizeof(buffer));
}

static void write_report(void)
{
	if (!report)
		return;
#if __GLIBC_PREREQ(2, 33)
	struct mallinfo2 info = mallinfo2();
#else
	struct mallinfo info = mallinfo();
#endif

	malloc_info(0, report);
	fprintf(report,
		"arena %zu\nsmblks %zu\nordblks %zu\nhblks %zu\nhblkhd %zu\n"
		"fsmblks %zu\nuordblks %zu\nfordblks %zu\nkeepcost %zu\n",
		(size_t)info.arena, (size_t)info.smblks, (size_t)info.ordblks, (size_t)info.hblks,
		(size_t)info.hblkhd, (size_t)info.fsmblks, (size_t)info.uordblks,
		(size_t)info.fordblks, (size_t)info.keepcost);
	fflush(report);
}

/* Free some of those from first on: the blocks between them stay. */
static void free_some(void *volatile *blocks, size_t first, size_t end, size_t step)
{
	for (size_t i = first; i < end; i += step) {
		truth_free(blocks[i]);
		blocks[i] = NULL;
	}
}

static OUT_OF_LINE void populate(size_t thread)
{
	void *volatile *blocks = held[thread];
	uint32_t random = (uint32_t)thread + 1;

	for (size_t i = 0; i < BLOCKS; i++)
		blocks[i] = truth_block(i % 3 ? 24 + 16 * truth_random(&random, 6)
					      : 200 + truth_random(&random, 3000));
	for (size_t i = BLOCKS; i < BLOCKS + LARGE; i++)
		blocks[i] = truth_block(1500 + 40 * i);
	/* Into caches, until they are full, then bins. */
	free_some(blocks, 0, BLOCKS / 2, 3);
	free_some(blocks, BLOCKS, BLOCKS + LARGE, 2);
	/* Too large for the unsorted: they go to their bins. */
	blocks[BLOCKS] = truth_block(100000);
	free_some(blocks, BLOCKS / 2 + 1, BLOCKS, 3);
	free_some(blocks, BLOCKS / 2 - BLOCKS / 2 % 3 + 3, BLOCKS, 6);
	for (size_t i = 0; i < BLOCKS + LARGE; i++)
		if (blocks[i])
			truth_kept(blocks[i]);
}

static void *populating_thread(void *argument)
{
	truth_warm_up();
	/* Creating threads allocates, and would take freed blocks. */
	atomic_fetch_add(&started, 1);
	while (atomic_load(&started) < THREADS)
		sched_yield();
	populate((size_t)argument);
	truth_rest();
}

static OUT_OF_LINE void populate_all(void)
{
	pthread_t thread;

	for (size_t i = 0; i < MAPPED; i++) {
		mapped[i] = truth_block(300000 + 5000 * i);
		truth_kept(mapped[i]);
	}
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, populating_thread, (void *)i))
			truth_fail("create a thread");
	truth_await(THREADS);
	populate(THREADS);
}

int main(void)
{
	truth_open();
	truth_warm_up();
	open_report();
	/* It would grow as soon as one is freed. */
	mallopt(M_MMAP_THRESHOLD, 256 << 10);
	populate_all();
	write_report();
	truth_ready();
}
