/*
 * A program that moves the break itself, between malloc's own moves: its memory lies amid the heap,
 * fenced off, and is a root.
 */

#include "truth.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 12, BLOCKS = 300, KEPT_BY_ROUND = 20 };

static void *volatile held[ROUNDS][BLOCKS];

/* Memory of the program's own at the break, from an aligned address on. */
static void **take_from_break(size_t size)
{
	char *start = sbrk((intptr_t)size);

	if (start == (void *)-1)
		truth_fail("move the break");
	memset(start, 0, size);
	return (void **)(start + -(uintptr_t)start % sizeof(void *));
}

static OUT_OF_LINE void populate(size_t round)
{
	static const size_t odd_sizes[] = { 4096, 1000, 333, 8192, 20000, 201 };
	uint32_t random = (uint32_t)round;
	void *freed[BLOCKS] = { NULL };
	void **foreign = take_from_break(odd_sizes[round % 6]);
	size_t foreign_count = 0;

	for (size_t i = 0; i < BLOCKS; i++) {
		void *block = truth_block(truth_random(&random, 2000));

		switch (truth_random(&random, 4)) {
		case 0:
			truth_lost(block);
			*(void **)block = foreign;
			break;
		case 1:
			if (foreign_count < KEPT_BY_ROUND) {
				truth_kept(block);
				foreign[foreign_count++] = block;
				break;
			}
			/* fall through */
		case 2:
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

int main(void)
{
	truth_open();
	/* Before malloc's first move, as well. */
	take_from_break(333);
	truth_warm_up();
	for (size_t round = 0; round < ROUNDS; round++)
		populate(round);
	truth_ready();
}
