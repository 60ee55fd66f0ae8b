/*
 * A few allocations of known sizes for sessions: each size stands for one way of being held, or
 * lost.
 *
 *	static	0x28 with a signature -> 0x38 -> 0x48
 *		0x30ff0, mapped
 *	stack	0x58
 *	register 0x158
 *	leaked	0x68 with a signature -> 0x78 -> 0x88
 *		0x98 -> 0x98 -> 0x98 -> the first: a ring, which refers to
 *		0xa8, and so does
 *		0xb8
 *		0xc8 twice, alone
 *	freed	0xd8, in the thread's cache, to which the first 0x28 refers
 *		0x508, beside the caches, to which static memory refers
 */

#include "tests/cli/programs/blocks.h"

#include <string.h>
#include <sys/syscall.h>

/* The target of a first word that is a signature. */
static const char *const signatures[] = { "session", "request" };

static void **volatile static_block;
static void **volatile mapped_block;
static void **volatile dangling;
static void **volatile for_register;

static OUT_OF_LINE void keep(void *volatile *on_stack)
{
	static_block = block(0x28, NULL);
	static_block[0] = (void *)&signatures[0];
	static_block[1] = block(0x38, NULL);
	((void **)static_block[1])[2] = block(0x48, NULL);
	static_block[2] = block(0xd8, NULL);
	memcpy(static_block + 3, "\033[31mred", 8);
	mapped_block = malloc(0x30ff0 - 8); /* filled up to the page's end */
	*on_stack = block(0x58, NULL);
	for_register = block(0x158, NULL);
}

static OUT_OF_LINE void lose_chain(void)
{
	void **first = block(0x68, NULL), **second = block(0x78, NULL);

	first[0] = (void *)&signatures[1];
	first[4] = second;
	second[0] = block(0x88, NULL);
}

static OUT_OF_LINE void lose_ring(void)
{
	void **ring[] = { block(0x98, NULL), block(0x98, NULL), block(0x98, NULL) };
	void **shared = block(0xa8, NULL), **other = block(0xb8, NULL);

	for (int i = 0; i < 3; i++)
		ring[i][3] = ring[(i + 1) % 3];
	ring[0][5] = shared;
	other[5] = shared;
	block(0xc8, NULL);
	block(0xc8, NULL);
}

static OUT_OF_LINE void release(void)
{
	dangling = block(0x508, NULL);
	block(0x18, NULL); /* keeps it away from the end of the heap; lost */
	free(dangling);
	free(static_block[2]);
}

int main(void)
{
	void *volatile on_stack[1];
	void **in_register;

	keep(on_stack);
	lose_chain();
	lose_ring();
	release();
	scrub();
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		return 1;
	in_register = for_register;
	for_register = NULL;
	for (;;)
		__asm__ volatile("syscall"
				 :
				 : "a"(SYS_pause), "b"(in_register), "D"(0), "S"(0), "d"(0)
				 : "rcx", "r11", "memory");
	return on_stack[0] == NULL;
}
