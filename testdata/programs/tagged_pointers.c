/*
 * For aarch64, whose processors ignore the top byte of a pointer: blocks that only pointers with
 * tags there hold, from static data, from the stack and from other blocks, to their start or into
 * them. What is held by a word that has other bits changed is lost. With -DSIGNED, pointers have
 * signatures instead, in all bits that addresses do not need.
 */
#include "truth.h"

#include <stdlib.h>

enum { COUNT = 300, WITHIN = 24 };

static char *volatile held[COUNT];
static uintptr_t volatile changed[COUNT];

#ifdef SIGNED
static char *tagged(char *block, unsigned int tag)
{
	__asm__(".arch_extension pauth\n\tpacda %0, %1" : "+r"(block) : "r"((uint64_t)tag));
	return block;
}

static char *plain(char *block, unsigned int tag)
{
	__asm__(".arch_extension pauth\n\tautda %0, %1" : "+r"(block) : "r"((uint64_t)tag));
	return block;
}
#else
static char *tagged(char *block, unsigned int tag)
{
	return (char *)((uintptr_t)block | (uintptr_t)(tag % 256) << 56);
}

/* The processor takes no notice of tags. */
static char *plain(char *block, unsigned int tag)
{
	return tagged(block, tag);
}
#endif

/* Each leads to another one, which nothing else does. */
OUT_OF_LINE static void make(unsigned int number)
{
	char *outer = truth_block(40 + number), *inner = truth_block(60);

	truth_kept(outer);
	truth_kept(inner);
	held[number] = tagged(outer, number + 1) + number % WITHIN;
	*(char **)plain(tagged(outer, 7 * number), 7 * number) =
		tagged(inner, 255 - number) + number % WITHIN;
}

OUT_OF_LINE static void lose(unsigned int number)
{
	char *block = truth_block(80);

	truth_lost(block);
#ifdef SIGNED
	changed[number] = ~(uintptr_t)tagged(block, number);
#else
	changed[number] = (uintptr_t)tagged(block, number) ^ (uintptr_t)1 << (50 + number % 6);
#endif
}

int main(void)
{
	char *volatile on_stack;

	truth_open();
	truth_warm_up();
	for (unsigned int i = 0; i < COUNT; i++) {
		make(i);
		lose(i);
	}
	on_stack = tagged(truth_block(100), 0xb4);
	truth_kept(plain(on_stack, 0xb4));
	truth_ready();
	return on_stack != NULL;
}
