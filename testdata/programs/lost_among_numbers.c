/*
 * 10,000 blocks that are lost, beside as many in use, with numbers that lead from one block to
 * another: sizes, constants, or negative numbers. And arrays of random numbers, products, small
 * numbers and text.
 *
 * Says "ready", and waits.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 10000, NUMBERS = 1 << 18, STACK = 1 << 16 };

struct block {
	long capacity, size, error;
};

static struct block *volatile kept[BLOCKS];
static uint64_t *volatile hashes, *volatile sizes;
static double *volatile products;
static char *volatile texts[BLOCKS / 10];

static uint64_t draw(void)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static struct block *make_block(const char *mode)
{
	struct block *block = malloc(sizeof(*block));
	int is_constant = strcmp(mode, "constants") == 0;

	if (!block)
		exit(1);
	block->capacity = is_constant ? 64 : 32L << draw() % 8;
	block->size = (long)(draw() % 100) * 8;
	block->error = strcmp(mode, "negative") == 0 ? -32 : 0;
	return block;
}

static __attribute__((noinline)) void make(const char *mode)
{
	hashes = malloc(NUMBERS * sizeof(*hashes));
	sizes = malloc(NUMBERS * sizeof(*sizes));
	products = malloc(NUMBERS * sizeof(*products));
	for (int i = 0; i < NUMBERS; i++) {
		hashes[i] = draw();
		sizes[i] = draw() % 1000000 * 8;
		products[i] = i * 1e6 / 7;
	}
	for (int i = 0; i < BLOCKS; i++) {
		make_block(mode);
		kept[i] = make_block(mode);
		if (i % 10 > 0)
			continue;
		texts[i / 10] = malloc(200);
		for (int j = 0; j < 200; j++)
			texts[i / 10][j] = (char)('a' + draw() % 26);
	}
}

static __attribute__((noinline)) void overwrite_stack(void)
{
	char stack[STACK];

	memset(stack, 0, sizeof(stack));
	__asm__ volatile("" ::"r"(stack) : "memory");
}

int main(int argc, char **argv)
{
	make(argc > 1 ? argv[1] : "");
	overwrite_stack();
	puts("ready");
	fflush(stdout);
	getchar();
	return 0;
}
