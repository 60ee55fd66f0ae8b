/*
 * A program that does nothing but allocate: so many blocks of a size, linked. In the end it says
 * when that was, by CLOCK_MONOTONIC in nanoseconds, so that its parent knows how long it
 * took until then; and the processor time that it took, in nanoseconds.
 *
 *	allocate BLOCKS SIZE [wait]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Chosen so that ten million blocks of 48 bytes take about two seconds. */
enum { ROUNDS = 20 };

/* Some work on each block, as a program would do. */
static uint64_t fill(uint64_t *block, size_t size, uint64_t seed)
{
	for (size_t i = 1; i < size / sizeof(*block); i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		block[i] = seed >> 33;
	}
	return seed;
}

static long long read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* A search for leaks finds none. */
void **kept;

int main(int count, char **arguments)
{
	size_t blocks = count > 1 ? strtoull(arguments[1], NULL, 10) : 1;
	size_t size = count > 2 ? strtoull(arguments[2], NULL, 10) : 16;
	void **list = NULL;
	uint64_t seed = 1;

	for (size_t i = 0; i < blocks; i++) {
		void **block = malloc(size);

		if (!block)
			return 1;
		block[0] = list;
		list = block;
		for (int round = 0; round < ROUNDS; round++)
			seed = fill((uint64_t *)block, size, seed);
	}
	kept = list;
	printf("%lld %lld\n", read_clock(CLOCK_MONOTONIC), read_clock(CLOCK_PROCESS_CPUTIME_ID));
	fflush(stdout);
	if (count > 3 && strcmp(arguments[3], "wait") == 0)
		pause();
	return list == NULL;
}
