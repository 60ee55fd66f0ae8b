/*
 * A program whose threads, as many as its argument says, do nothing but allocate and free. One more
 * waits.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *work(void *data)
{
	enum { KEPT = 64, LARGEST = 1024 };
	uint64_t state = (uintptr_t)data * 2 + 1;
	void *kept[KEPT] = { 0 };

	for (;;) {
		void **place;

		state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
		place = &kept[state >> 58];
		free(*place);
		*place = malloc(1 + (state >> 33) % LARGEST);
	}
	return NULL;
}

int main(int count, char **arguments)
{
	uintptr_t threads = count > 1 ? strtoul(arguments[1], NULL, 10) : 0;
	pthread_t thread;

	for (uintptr_t i = 0; i < threads; i++)
		if (pthread_create(&thread, NULL, work, (void *)i))
			return EXIT_FAILURE;
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
