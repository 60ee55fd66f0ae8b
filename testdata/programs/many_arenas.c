/*
 * More arenas than processors, some of them several heaps long, one of which shrank again, and one
 * that a second thread took over from a first.
 */

#include "truth.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS = 12, BLOCKS = 200, ON_STACK = 4, MIB = 1 << 20 };

/* How many MiB a thread allocates in blocks of one: a heap takes 64. */
static const size_t large_counts[THREADS] = { 0, 70, 0, 140, 0, 80, 3 };
static const size_t shrinking_thread = 5;

static void *volatile held[THREADS + 2][BLOCKS];
static void *volatile chains[THREADS];
static atomic_int started;

static OUT_OF_LINE void populate_small(size_t thread, bool freeing)
{
	uint32_t random = (uint32_t)thread;
	void *freed[BLOCKS] = { NULL };

	for (size_t i = 0; i < BLOCKS; i++) {
		void *block = truth_block(truth_random(&random, 5000));

		switch (truth_random(&random, freeing ? 3 : 2)) {
		case 0:
			truth_lost(block);
			break;
		case 1:
			truth_kept(block);
			held[thread][i] = block;
			break;
		default:
			freed[i] = block;
		}
	}
	for (size_t i = 0; i < BLOCKS; i++)
		if (freed[i])
			truth_free(freed[i]);
}

static OUT_OF_LINE void populate_large(size_t thread)
{
	void **kept = NULL;
	void *freed[200];
	size_t freed_count = 0;

	for (size_t i = 0; i < large_counts[thread]; i++) {
		void **block = truth_zeroed_block(MIB - 500 * (i % 3));

		if (thread == shrinking_thread && i > 50) {
			freed[freed_count++] = block;
		} else if (i % 2) {
			truth_lost(block);
		} else {
			truth_kept(block);
			block[1000] = kept;
			kept = block + i;
		}
	}
	chains[thread] = kept;
	while (freed_count > 0)
		truth_free(freed[--freed_count]);
}

static OUT_OF_LINE void populate_frame(size_t thread, void *volatile *frame)
{
	/* All at once, so that no thread takes over another's arena. */
	truth_warm_up();
	atomic_fetch_add(&started, 1);
	while (atomic_load(&started) < THREADS)
		sched_yield();
	for (size_t i = 0; i < ON_STACK; i++) {
		frame[i] = truth_block(50 * i + thread);
		truth_kept(frame[i]);
	}
}

static void *living_thread(void *argument)
{
	void *volatile frame[ON_STACK];

	populate_frame((size_t)argument, frame);
	populate_small((size_t)argument, true);
	populate_large((size_t)argument);
	truth_rest();
}

/* Frees nothing: its heir's thread cache might be put where it was. */
static void *finishing_thread(void *argument)
{
	populate_small((size_t)argument, false);
	truth_scrub();
	return NULL;
}

static void *heir_thread(void *argument)
{
	truth_warm_up();
	populate_small((size_t)argument, true);
	truth_rest();
}

static OUT_OF_LINE void run_threads(void)
{
	pthread_t thread;

	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, living_thread, (void *)i))
			truth_fail("create a thread");
	truth_await(THREADS);

	if (pthread_create(&thread, NULL, finishing_thread, (void *)(size_t)THREADS))
		truth_fail("create a thread");
	pthread_join(thread, NULL);
	if (pthread_create(&thread, NULL, heir_thread, (void *)(size_t)(THREADS + 1)))
		truth_fail("create a thread");
	truth_await(THREADS + 1);
}

int main(void)
{
	truth_open();
	mallopt(M_ARENA_MAX, 16);
	/* Half a heap is the most that malloc accepts. */
	mallopt(M_MMAP_THRESHOLD, 32 * MIB);
	run_threads();
	truth_ready();
}
