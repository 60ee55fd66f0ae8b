/*
 * A busy life that ends with everything freed: whatever is said to be leaked is free in truth. The
 * table of dangling pointers stays in place.
 */

#include "truth.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { SLOTS = 150000, ROUNDS = 3 };

static void **slots;

static size_t some_size(uint32_t *random)
{
	switch (truth_random(random, 100)) {
	case 0:
		return truth_random(random, 4000);
	case 1:
	case 2:
	case 3:
		return truth_random(random, 1100);
	default:
		return truth_random(random, 150);
	}
}

static void free_slot(size_t slot)
{
	if (slots[slot])
		truth_free(slots[slot]);
	slots[slot] = NULL;
}

static OUT_OF_LINE void live(void)
{
	uint32_t random = 7;

	for (size_t round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < SLOTS; i++)
			if (!slots[i])
				slots[i] = truth_block(some_size(&random));
		for (size_t i = 0; i < SLOTS / 2; i++)
			free_slot(truth_random(&random, SLOTS));
	}
}

static OUT_OF_LINE void free_all(void)
{
	uint32_t random = 8;

	for (size_t i = SLOTS; i-- > 1;) {
		size_t other = truth_random(&random, (uint32_t)i + 1);
		void *block = slots[i];

		slots[i] = slots[other];
		slots[other] = block;
	}
	for (size_t i = 0; i < SLOTS; i++)
		if (slots[i])
			truth_free(slots[i]);
}

int main(void)
{
	truth_open();
	truth_warm_up();
	slots = mmap(NULL, SLOTS * sizeof(*slots), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (slots == MAP_FAILED)
		truth_fail("map the slots");
	live();
	free_all();
	truth_ready();
}
