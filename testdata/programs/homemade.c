/*
 * A home-made allocator, as unlike malloc() as can be: blocks of any multiple of 8 bytes, without
 * headers, side by side. Sizes are known by a bitmap of starts beside the area that blocks come
 * from. A free block begins with a link to the next one, plus LINK_TAG; who gets the block finds
 * the link there. Of three areas, one is mapped and two are nested in blocks of malloc(): one
 * behind a head that the program uses, the other from the first byte on.
 *
 * Its reader is testdata/allocators/homemade.c.
 */

#include "truth.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	STEP = 8,
	LINK_TAG = 7,
	AREAS = 3,
	AREA_SIZE = 64 << 10,
	PAGE = 4096,
	HEAD = 64,
	TAIL = 56, /* bytes of an outer block behind its area */
	BLOCKS = 300,
	MOST = 25, /* steps of a block */
};

struct area {
	char *base;
	uint64_t size; /* bytes */
	uint64_t used; /* of these handed out once */
	uint64_t first_free;
	uint8_t starts[AREA_SIZE / STEP / 8]; /* a bit for each step where a block begins */
	uint8_t in_use[AREA_SIZE / STEP / 8]; /* and if that is in use */
};

/* At the start of a mapping. */
struct control {
	char magic[16];
	uint64_t area_count;
	struct area areas[AREAS];
};

static struct control *control;
static void *volatile kept[AREAS][BLOCKS];
static void **volatile outer;
static void *volatile reused[AREAS];

static void put_bit(uint8_t *bits, size_t step, bool value)
{
	bits[step / 8] = (uint8_t)((bits[step / 8] & ~(1 << step % 8)) | value << step % 8);
}

static bool get_bit(const uint8_t *bits, size_t step)
{
	return bits[step / 8] >> step % 8 & 1;
}

static size_t size_of(const struct area *area, const char *block)
{
	size_t first = (size_t)(block - area->base) / STEP, step = first + 1;

	while (step < area->used / STEP && !get_bit(area->starts, step))
		step++;
	return (step - first) * STEP;
}

/* The first free block if it is of that size, as it is; else a new one. */
static void *allocate(struct area *area, size_t size)
{
	char *block = (char *)(area->first_free - LINK_TAG);

	if (area->first_free && size_of(area, block) == size) {
		memcpy(&area->first_free, block, sizeof(area->first_free));
	} else {
		block = area->base + area->used;
		if (size > area->size - area->used)
			truth_fail("fill the area");
		area->used += size;
		memset(block, 0x5a, size);
	}
	put_bit(area->starts, (size_t)(block - area->base) / STEP, true);
	put_bit(area->in_use, (size_t)(block - area->base) / STEP, true);
	return block;
}

static void release(struct area *area, void *block)
{
	truth_tell("freed", block, size_of(area, block));
	memcpy(block, &area->first_free, sizeof(area->first_free));
	area->first_free = (uintptr_t)block + LINK_TAG;
	put_bit(area->in_use, (size_t)((char *)block - area->base) / STEP, false);
}

/*
 * Blocks of all sizes: some kept, some lost, some freed. Every eighth lost one keeps nothing but
 * another lost one; a kept one of two words or more keeps a block of malloc().
 */
static OUT_OF_LINE void populate(size_t number)
{
	struct area *area = &control->areas[number];
	void *before = NULL;
	uint32_t state = 1 + (uint32_t)number;

	for (size_t i = 0; i < BLOCKS; i++) {
		size_t size = STEP * (1 + truth_random(&state, MOST));
		void **block = allocate(area, size);

		switch (i % 3) {
		case 0:
			kept[number][i] = block;
			truth_tell("kept", block, size);
			if (size >= 2 * STEP && i % 30 == 0) {
				block[1] = truth_block(40);
				truth_kept(block[1]);
			}
			break;
		case 1:
			truth_tell("lost", block, size);
			if (i % 8 == 0)
				block[0] = before;
			before = block;
			break;
		default:
			release(area, block);
		}
	}
	truth_lost(truth_block(48));
}

/* A kept block has a link to a lost one from when both were free. */
static OUT_OF_LINE void reuse(size_t number)
{
	enum { SIZE = 13 * STEP };
	struct area *area = &control->areas[number];
	void *first = allocate(area, SIZE), *second = allocate(area, SIZE);

	release(area, first);
	release(area, second);
	reused[number] = allocate(area, SIZE);
	truth_tell("kept", second, SIZE);
	truth_tell("lost", allocate(area, SIZE), SIZE);
}

static void *map(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		truth_fail("mmap");
	return memory;
}

/* The head and the tail of an outer block are the program's, and keep a block each. */
static OUT_OF_LINE void make_areas(void)
{
	char *bases[AREAS] = { map(AREA_SIZE) };

	control = map((sizeof(*control) + PAGE - 1) / PAGE * PAGE);
	memcpy(control->magic, "HOMEMADE ALLOC 8", sizeof(control->magic));
	control->area_count = AREAS;
	outer = truth_block(HEAD + AREA_SIZE + TAIL);
	bases[1] = (char *)outer + HEAD;
	bases[2] = truth_block(4 * AREA_SIZE);
	outer[0] = truth_block(72);
	truth_kept(outer[0]);
	*truth_last_word(outer) = truth_block(88);
	truth_kept(*truth_last_word(outer));
	truth_tell("kept", (void *)outer, HEAD);
	truth_number("outer", (uintptr_t)outer);
	truth_number("outer", (uintptr_t)bases[2]);
	for (size_t i = 0; i < AREAS; i++) {
		control->areas[i].base = bases[i];
		control->areas[i].size = AREA_SIZE;
	}
}

int main(void)
{
	truth_open();
	truth_warm_up();
	make_areas();
	for (size_t i = 0; i < AREAS; i++) {
		populate(i);
		reuse(i);
	}
	truth_ready();
}
