/*
 * Aligned blocks: what precedes and follows them in the memory that malloc took for them is freed
 * in parts, and those that have a mapping of their own do not start at its beginning.
 */

#include "truth.h"

#include <malloc.h>
#include <stdlib.h>

enum { ALIGNMENTS = 14, SIZES = 9, ROUNDS = 3 };

static const size_t alignments[ALIGNMENTS] = { 16,   32,   64,	 128,	256,   512,   1024,
					       2048, 4096, 8192, 16384, 32768, 65536, 2 << 20 };
static const size_t sizes[SIZES] = { 0, 1, 24, 100, 1000, 1033, 5000, 40000, 150000 };

static void *volatile held[2 * ROUNDS][ALIGNMENTS][SIZES];
static void *volatile others[4];

/* Once in the heap, once in mappings of their own. */
static void set_mapped(bool mapped)
{
	mallopt(M_MMAP_THRESHOLD, mapped ? 4096 : 32 << 20);
}

static OUT_OF_LINE void populate(size_t round)
{
	uint32_t random = (uint32_t)round;
	void *freed[ALIGNMENTS][SIZES] = { { NULL } };

	for (size_t i = 0; i < ALIGNMENTS; i++) {
		for (size_t j = 0; j < SIZES; j++) {
			void *block = truth_aligned_block(alignments[i], sizes[j]);

			switch (truth_random(&random, 3)) {
			case 0:
				truth_lost(block);
				break;
			case 1:
				truth_kept(block);
				held[round][i][j] = block;
				break;
			default:
				freed[i][j] = block;
			}
		}
	}
	for (size_t i = 0; i < ALIGNMENTS; i++)
		for (size_t j = 0; j < SIZES; j++)
			if (freed[i][j])
				truth_free(freed[i][j]);
}

static OUT_OF_LINE void populate_by_other_names(void)
{
	others[0] = memalign(64, 500);
	others[1] = aligned_alloc(256, 512);
	others[2] = valloc(700);
	others[3] = pvalloc(700);
	for (size_t i = 0; i < 4; i++) {
		if (!others[i])
			truth_fail("allocate an aligned block");
		truth_fill(others[i], 0);
		truth_kept(others[i]);
	}
}

int main(void)
{
	truth_open();
	truth_warm_up();
	for (size_t round = 0; round < ROUNDS; round++) {
		set_mapped(true);
		populate(2 * round);
		set_mapped(false);
		populate(2 * round + 1);
	}
	populate_by_other_names();
	truth_ready();
}
