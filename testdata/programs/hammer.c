/*
 * Threads that allocate and free all the time, to be caught in the act.
 *
 * Each has a row of slots. What it allocates it puts into a slot at once, and what it frees it
 * takes out of the slot right before. So in a core the slots hold all that is in use, but for what
 * a thread is just busy with. Once all are filled, the program writes where they are, and "ready":
 *
 *	slots ADDRESS COUNT
 *
 * With "crash" as argument, one more thread then waits for a signal and, at SIGUSR1, follows a null
 * pointer.
 */

#include "truth.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, SLOTS = 500 };

static void *volatile slots[THREADS][SLOTS];
static atomic_int filled; /* rows */

/* Small ones for the caches, some for the bins, few with their own mapping. */
static size_t some_size(uint32_t *random)
{
	uint32_t kind = truth_random(random, 1000);

	if (kind < 700)
		return truth_random(random, 200);
	if (kind < 950)
		return truth_random(random, 3000);
	if (kind < 999)
		return truth_random(random, 50000);
	return 150000 + truth_random(random, 200000);
}

/* In the end, nothing of the row is empty. */
static void fill(void *volatile *row, uint32_t *random)
{
	for (size_t slot = 0; slot < SLOTS; slot++)
		row[slot] = malloc(some_size(random));
	atomic_fetch_add(&filled, 1);
}

static _Noreturn void hammer(void *volatile *row, uint32_t random)
{
	for (;;) {
		uint32_t slot = truth_random(&random, SLOTS);
		size_t size = some_size(&random);
		void *block = row[slot];

		row[slot] = NULL;
		if (truth_random(&random, 4) == 0) {
			row[slot] = realloc(block, size + 1);
			continue;
		}
		free(block);
		row[slot] = truth_random(&random, 4) ? malloc(size) : calloc(1, size);
	}
}

static void *run(void *row)
{
	uint32_t random = (uint32_t)((void *volatile *)row - slots[0]) + 1;

	fill(row, &random);
	hammer(row, random);
}

static void *crash(void *argument)
{
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigwait(&set, &number);
	return *(void *volatile *)argument;
}

int main(int argument_count, char **arguments)
{
	const char *path = getenv("HEAPCORE_TRUTH");
	FILE *file = path ? fopen(path, "w") : NULL;
	uint32_t random = 1;
	pthread_t thread;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (!file)
		truth_fail("write the truth");
	for (size_t i = 1; i < THREADS; i++)
		if (pthread_create(&thread, NULL, run, (void *)slots[i]))
			truth_fail("create a thread");
	if (argument_count > 1 && strcmp(arguments[1], "crash") == 0 &&
	    pthread_create(&thread, NULL, crash, NULL))
		truth_fail("create a thread");
	fill(slots[0], &random);
	while (atomic_load(&filled) < THREADS)
		sched_yield();
	fprintf(file, "slots %" PRIxPTR " %d\nready\n", (uintptr_t)slots, THREADS * SLOTS);
	fclose(file);
	hammer(slots[0], random);
}
