/*
 * Memory that is lost by threads: by one that ends, and by its thread-local variable, which is gone
 * with it.
 *
 *	threads CASE leak|clean
 */
#include "testdata/programs/gate/cases.h"

#include <pthread.h>
#include <stdlib.h>

static __thread void *kept;

static void *lose(void *leak)
{
	for (int i = 0; i < 9; i++) {
		char *block = malloc(56);

		memset(block, 1, 56);
		if (!leak)
			free(block);
	}
	forget();
	return NULL;
}

static void *keep(void *leak)
{
	kept = malloc(200);
	memset(kept, 2, 200);
	if (!leak)
		free(kept);
	forget();
	return NULL;
}

static void run_thread(void *(*function)(void *), bool leak)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, function, leak ? &kept : NULL) == 0)
		pthread_join(thread, NULL);
}

static void in_thread(bool leak)
{
	run_thread(lose, leak);
}

static void thread_local_variable(bool leak)
{
	run_thread(keep, leak);
}

const struct leak_case cases[] = {
	{ "thread", in_thread },
	{ "thread-local", thread_local_variable },
	{ NULL, NULL },
};
