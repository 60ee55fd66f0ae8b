/*
 * A heap that gave back what it could: malloc_trim() leaves free blocks whose pages are zero but
 * for their ends, in the main arena and in a thread's.
 */

#include "truth.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 2, BLOCKS = 800 };

static void *volatile held[THREADS][BLOCKS];

static OUT_OF_LINE void populate(size_t thread)
{
	uint32_t random = (uint32_t)thread;
	void *freed[BLOCKS] = { NULL };

	for (size_t i = 0; i < BLOCKS; i++) {
		void *block = truth_block(truth_random(&random, 40000));

		switch (truth_random(&random, 8)) {
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

static void *run(void *argument)
{
	truth_warm_up();
	populate(1);
	truth_rest();
	return argument;
}

static OUT_OF_LINE void start_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL))
		truth_fail("create a thread");
	truth_await(1);
}

static OUT_OF_LINE void trim(void)
{
	if (!malloc_trim(0))
		truth_fail("trim the heap");
}

int main(void)
{
	truth_open();
	truth_warm_up();
	start_thread();
	populate(0);
	trim();
	truth_ready();
}
