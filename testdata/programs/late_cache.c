/*
 * Threads that free nothing until late: from 2.43 on, malloc allocates a thread's cache only then,
 * and so amid the heap rather than at its start.
 */

#include "truth.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 3, BLOCKS = 300, LARGE_BLOCKS = 20 };

static void *volatile held[THREADS][BLOCKS];

static OUT_OF_LINE void populate(size_t thread)
{
	void *freed[BLOCKS] = { NULL };
	void *large[LARGE_BLOCKS];

	for (size_t i = 0; i < BLOCKS; i++) {
		void *block = truth_block(i * 3);

		switch (i % 3) {
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
		if (i < LARGE_BLOCKS)
			large[i] = truth_block(5000);
	}
	/* Not listed, as the cache may come to lie where one of these was. */
	for (size_t i = 0; i < LARGE_BLOCKS; i++)
		free(large[i]);
	for (size_t i = 0; i < BLOCKS; i++)
		if (freed[i])
			truth_free(freed[i]);
}

static void *run(void *argument)
{
	populate((size_t)argument);
	truth_rest();
	return argument;
}

static OUT_OF_LINE void start_threads(void)
{
	pthread_t thread;

	for (size_t i = 1; i < THREADS; i++)
		if (pthread_create(&thread, NULL, run, (void *)i))
			truth_fail("create a thread");
	truth_await(THREADS - 1);
}

int main(void)
{
	truth_open();
	start_threads();
	populate(0);
	truth_ready();
}
