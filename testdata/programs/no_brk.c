/*
 * A heap that cannot grow at the break, as something is mapped above it, and goes on in pieces that
 * malloc maps. With the argument "early" it is so from the start; else a heap at the break comes
 * first.
 */

#include "truth.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, BLOCKS = 2500, ROUNDS = 3 };

static void *volatile held[ROUNDS][BLOCKS];
static void *volatile region[ROUNDS];

/* Take the page above the break, which the break cannot pass then. */
static OUT_OF_LINE void stop_break(void)
{
	uintptr_t end = ((uintptr_t)sbrk(0) + PAGE - 1) & -(uintptr_t)PAGE;

	if (mmap((void *)end, PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
		truth_fail("map the page above the break");
}

/* The program's own mappings come to lie between the pieces. */
static OUT_OF_LINE void map_region(size_t round)
{
	void **words = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (words == MAP_FAILED)
		truth_fail("map a region");
	words[round] = truth_block(1000);
	truth_kept(words[round]);
	region[round] = words;
}

static OUT_OF_LINE void populate(size_t round)
{
	uint32_t random = (uint32_t)round;
	void *freed[BLOCKS] = { NULL };
	void *lost = NULL;

	for (size_t i = 0; i < BLOCKS; i++) {
		void *block = truth_block(i % 500 ? truth_random(&random, 1500) : 100000);

		switch (truth_random(&random, 3)) {
		case 0:
			truth_lost(block);
			*truth_last_word(block) = lost;
			lost = block;
			break;
		case 1:
			truth_kept(block);
			held[round][i] = block;
			break;
		default:
			freed[i] = block;
		}
	}
	for (size_t i = 0; i < BLOCKS; i++)
		if (freed[i])
			truth_free(freed[i]);
}

int main(int argument_count, char **arguments)
{
	bool early = argument_count > 1 && strcmp(arguments[1], "early") == 0;

	truth_open();
	if (early)
		stop_break();
	truth_warm_up();
	for (size_t round = 0; round < ROUNDS; round++) {
		if (round == 1 && !early)
			stop_break();
		map_region(round);
		populate(round);
	}
	truth_ready();
}
