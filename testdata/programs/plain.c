/*
 * Every small size and a few large ones, held in every plain way: by static, stack and thread-local
 * variables, from the start, the middle and the last byte, and by the last word of other blocks.
 * Near misses, dangling pointers and pointers in free memory hold nothing.
 */

#include "truth.h"

#include <malloc.h>
#include <stdlib.h>

enum { SMALL_SIZES = 5001, LARGE_BLOCKS = 40, ON_STACK = 16 };

static void *volatile held[SMALL_SIZES];
static void *volatile held_large[LARGE_BLOCKS];
static void *volatile near_misses[SMALL_SIZES];
static void *freed_at_the_end[SMALL_SIZES];
static void *volatile chain;
static __thread void *volatile thread_local_block;

/* A pointer into the block: to its start, its middle or its last byte. */
static void *some_pointer_to(void *block, size_t way)
{
	size_t size = malloc_usable_size(block);

	return (char *)block + (way % 3 ? size * (way % 3) / 2 - 1 : 0);
}

static void hold(void *block, size_t way)
{
	truth_kept(block);
	if (way % 2) {
		held[way] = some_pointer_to(block, way / 2);
	} else {
		*truth_last_word(block) = chain;
		chain = some_pointer_to(block, way / 2);
	}
}

static void lose(void *block, void *previous, size_t way)
{
	char *start = block;

	truth_lost(block);
	if (way % 4 == 0)
		*truth_last_word(block) = previous;
	/* One past the end, and the size that malloc keeps before the start. */
	near_misses[way] = way % 2 ? start + malloc_usable_size(block) : start - sizeof(size_t);
}

static OUT_OF_LINE void populate_small(void)
{
	uint32_t random = 1;
	void *lost = NULL;

	for (size_t size = 0; size < SMALL_SIZES; size++) {
		void *block = truth_block(size);

		switch (truth_random(&random, 4)) {
		case 0:
			lose(block, lost, size);
			lost = block;
			break;
		case 1:
			hold(block, size);
			break;
		case 2:
			*truth_last_word(block) = lost;
			truth_free(block);
			break;
		default:
			*truth_last_word(block) = lost;
			freed_at_the_end[size] = block;
		}
	}
}

static OUT_OF_LINE void populate_large(void)
{
	for (size_t i = 0; i < LARGE_BLOCKS; i++) {
		void *block = truth_block(90000 + 500 * i);

		if (i % 3 == 0) {
			truth_free(block);
		} else if (i % 3 == 1) {
			truth_lost(block);
		} else {
			truth_kept(block);
			held_large[i] = (char *)block + 50000;
		}
	}
}

static OUT_OF_LINE void populate_frame(void *volatile *frame)
{
	for (size_t i = 0; i < ON_STACK; i++) {
		frame[i] = truth_block(40 * i + 1);
		truth_kept(frame[i]);
	}
	thread_local_block = truth_zeroed_block(77);
	truth_kept(thread_local_block);
}

/* Blocks freed now are not reused, and their pointers dangle. */
static OUT_OF_LINE void free_rest(void)
{
	for (size_t i = 0; i < SMALL_SIZES; i++)
		if (freed_at_the_end[i])
			truth_free(freed_at_the_end[i]);
}

int main(void)
{
	void *volatile frame[ON_STACK];

	truth_open();
	truth_warm_up();
	populate_small();
	populate_large();
	populate_frame(frame);
	free_rest();
	truth_ready();
}
