/*
 * Blocks that grow, in place or by moving, that shrink, that move between the heap and mappings of
 * their own, and that end as nothing.
 */

#include "truth.h"

#include <malloc.h>
#include <stdlib.h>

enum { CHAINS = 120, STEPS = 40, MAPPED_CHAINS = 20 };

static void *volatile held[CHAINS + MAPPED_CHAINS];

static void *resize(void *block, size_t size)
{
	uintptr_t old_address = (uintptr_t)block;
	size_t old_size = malloc_usable_size(block);
	void *resized = realloc(block, size);

	if (!resized)
		truth_fail("realloc");
	if ((uintptr_t)resized != old_address)
		truth_freed(old_address, old_size);
	if (malloc_usable_size(resized) > old_size)
		truth_fill(resized, old_size);
	return resized;
}

static void resize_to_nothing(void *block)
{
	truth_freed((uintptr_t)block, malloc_usable_size(block));
	free(realloc(block, 0));
}

/* A resized block may hold a filled tail only: fill what it was used for. */
static void settle(void *block, size_t chain)
{
	truth_fill(block, 0);
	switch (chain % 3) {
	case 0:
		truth_lost(block);
		break;
	case 1:
		truth_kept(block);
		held[chain] = block;
		break;
	default:
		resize_to_nothing(block);
	}
}

static size_t next_size(size_t step, size_t chain, uint32_t *random)
{
	switch (chain / 3 % 4) {
	case 0:
		return 10 + step * (chain + 1);
	case 1:
		return 20 + (STEPS - step) * chain * 3;
	case 2:
		return 1 + truth_random(random, 20000);
	default:
		return (size_t)8 << step % 14;
	}
}

/* All chains grow in step, to be in each other's way. */
static OUT_OF_LINE void populate(void)
{
	uint32_t random = 3;
	void *blocks[CHAINS];

	for (size_t chain = 0; chain < CHAINS; chain++)
		blocks[chain] = truth_block(chain);
	for (size_t step = 0; step < STEPS; step++)
		for (size_t chain = 0; chain < CHAINS; chain++)
			blocks[chain] = resize(blocks[chain], next_size(step, chain, &random));
	for (size_t chain = 0; chain < CHAINS; chain++)
		settle(blocks[chain], chain);
}

static OUT_OF_LINE void populate_mapped(void)
{
	static const size_t sizes[] = {
		200000,	 300000, 10 << 20, 5 << 20, 150000,  180001,
		4 << 20, 100,	 250000,   250001,  2 << 20,
	};
	void *blocks[MAPPED_CHAINS];

	for (size_t chain = 0; chain < MAPPED_CHAINS; chain++)
		blocks[chain] = truth_block(140000 + chain * 5000);
	for (size_t chain = 0; chain < MAPPED_CHAINS; chain++)
		for (size_t step = 0; step <= chain % 11; step++)
			blocks[chain] = resize(blocks[chain], sizes[step]);
	for (size_t chain = 0; chain < MAPPED_CHAINS; chain++)
		settle(blocks[chain], CHAINS + chain);
}

int main(void)
{
	truth_open();
	truth_warm_up();
	/* A fixed threshold: it would rise with the first block unmapped. */
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	populate();
	populate_mapped();
	truth_ready();
}
