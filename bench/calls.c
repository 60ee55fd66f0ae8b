/*
 * A program that does nothing but allocate, below so many calls: blocks of 16 to 271 bytes, three
 * in four freed again some time later.
 *
 *	calls BLOCKS CALLS
 */
#include <stdint.h>
#include <stdlib.h>

enum { KEPT = 1 << 16 };
static void *kept[KEPT];

__attribute__((noipa)) static void *allocate(uint64_t seed)
{
	return malloc(16 + (seed >> 40) % 256);
}

__attribute__((noipa)) static void *call(int calls, uint64_t seed)
{
	void *block = calls > 2 ? call(calls - 1, seed) : allocate(seed);

	__asm__ volatile("" : : : "memory");
	return block;
}

int main(int count, char **arguments)
{
	long blocks = count > 1 ? atol(arguments[1]) : 1;
	int calls = count > 2 ? atoi(arguments[2]) : 1;
	uint64_t seed = 1;

	for (long i = 0; i < blocks; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		void *block = calls > 1 ? call(calls, seed) : allocate(seed);
		if (i % 4) {
			free(kept[(seed >> 20) % KEPT]);
			kept[(seed >> 20) % KEPT] = block;
		} else
			*(volatile char *)block = 1;
	}
	return 0;
}
