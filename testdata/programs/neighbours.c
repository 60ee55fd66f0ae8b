/*
 * A program whose answers must not depend on which mappings the kernel merges. Blocks are lost, or
 * kept by variables, by a thread's own variables, and by what lies next to these: an array that is
 * mapped first of all, and last. With the Boehm collector, some of its objects are referred to by
 * a variable of the main thread alone, which the collector does not scan: they are at risk.
 */

#define GC_THREADS
#include "truth.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifdef WITH_GC
#include <gc.h>
#endif

enum { LOST = 90, KEPT = 10, THREADS = 3, MAPPED = 1 << 16 };

static __thread void *volatile own[KEPT];
static __thread void *volatile risk[KEPT];
static void *volatile kept[1 + THREADS][KEPT];
static void **volatile mapped[2];

static void *block_create(int i)
{
	void *block = truth_block(40 + 24 * (size_t)(i % 20));

	truth_kept(block);
	return block;
}

static OUT_OF_LINE void keep(void *volatile *blocks)
{
	for (int i = 0; i < KEPT; i++)
		blocks[i] = block_create(i);
}

static OUT_OF_LINE void risk_objects(void)
{
#ifdef WITH_GC
	for (int i = 0; i < KEPT; i++) {
		risk[i] = GC_MALLOC(64);
		truth_tell("risk", risk[i], GC_size(risk[i]));
	}
#endif
}

static void *run_thread(void *blocks)
{
	truth_warm_up();
	keep(blocks);
	keep(own);
	truth_rest();
}

static void **map_array(void)
{
	void *array =
		mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (array == MAP_FAILED)
		truth_fail("mmap");
	return array;
}

static OUT_OF_LINE void populate(void)
{
	keep(kept[THREADS]);
	keep(own);
	risk_objects();
	for (int i = 0; i < 2; i++)
		keep((void *volatile *)mapped[i]);
	for (int i = 0; i < LOST; i++)
		truth_lost(truth_block(50 + (size_t)i));
}

int main(void)
{
	pthread_t threads[THREADS];

	truth_open();
	mapped[0] = map_array();
#ifdef WITH_GC
	GC_INIT();
	GC_disable();
#endif
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run_thread, (void *)kept[i]))
			truth_fail("pthread_create");
	truth_await(THREADS);
	mapped[1] = map_array();
	populate();
	truth_ready();
}
