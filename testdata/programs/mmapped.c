/*
 * Blocks with mappings of their own beside the program's own mappings: the kernel merges neighbours
 * into one. What malloc mapped is a block, what the program mapped is a root.
 */

#include "truth.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { GROUPS = 25, GROUP = 4, PAGE = 4096 };

static void *volatile held[GROUPS];
static char *volatile huge;

static void *map(size_t size)
{
	void *region = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (region == MAP_FAILED)
		truth_fail("map a region");
	return region;
}

/* One block kept by a static variable, one by a region, one lost, one freed. */
static OUT_OF_LINE void populate_group(size_t group)
{
	size_t size = (132 << 10) + 5000 * group;
	void *blocks[GROUP];
	size_t region_size = (1 + group % 3) * PAGE;
	void **region = NULL;

	for (size_t i = 0; i < GROUP; i++) {
		if (group % GROUP == i)
			region = map(region_size);
		blocks[i] = truth_block(size + i * 1000);
	}

	truth_kept(blocks[0]);
	held[group] = (char *)blocks[0] + size / 2;
	truth_kept(blocks[1]);
	region[group % 2 ? 0 : region_size / sizeof(*region) - 1] = (char *)blocks[1] + group;
	truth_lost(blocks[2]);
	*truth_last_word(blocks[2]) = blocks[0];
	*(void **)blocks[3] = blocks[2];
	truth_free(blocks[3]);
}

/* Lost ones that refer to each other and to kept ones. */
static OUT_OF_LINE void populate_lost_ring(void)
{
	void *first = truth_block(300000);
	void *second = truth_block(400000);
	void *third = truth_block(50);

	*truth_last_word(first) = second;
	*(void **)second = third;
	*(void **)third = first;
	truth_lost(first);
	truth_lost(second);
	truth_lost(third);
}

static OUT_OF_LINE void populate_huge(void)
{
	void *small = truth_block(60);
	void *mapped = truth_block(200000);

	huge = truth_zeroed_block((size_t)64 << 20);
	truth_kept(huge);
	truth_kept(small);
	truth_kept(mapped);
	memcpy(huge + (40 << 20), &small, sizeof(small));
	*truth_last_word(huge) = mapped;
}

/* A file's pages changed in private, and memory shared with children. */
static OUT_OF_LINE void populate_other_mappings(void)
{
	void **shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	void **no_longer_writable = map(PAGE);

	if (shared == MAP_FAILED)
		truth_fail("map shared memory");
	shared[7] = truth_block(135000);
	truth_kept(shared[7]);

	/* Memory that cannot be written any more can still be read, so it is a root. */
	no_longer_writable[9] = truth_block(136000);
	truth_kept(no_longer_writable[9]);
	if (mprotect(no_longer_writable, PAGE, PROT_READ))
		truth_fail("protect a region");
}

int main(void)
{
	truth_open();
	truth_warm_up();
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	for (size_t group = 0; group < GROUPS; group++)
		populate_group(group);
	populate_lost_ring();
	populate_huge();
	populate_other_mappings();
	truth_ready();
}
