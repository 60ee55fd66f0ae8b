/*
 * Damages freed blocks as its argument says, and names the damaged block: a "link" is overwritten;
 * one is freed "twice"; and under glibc only, the "key" or the "end" of one is. "nothing" damages
 * none.
 *
 * The blocks are few: a heap may be small.
 */
#include "truth.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 50, FREED = 4, SIZE = 40, LARGE = 2000 };

static void *volatile kept[BLOCKS];

/* The compiler must not know that it is freed. */
static void *hide(void *block)
{
	__asm__ volatile("" : "+r"(block));
	return block;
}

static OUT_OF_LINE void damage(const char *how)
{
	char *blocks[FREED], *large = malloc(LARGE), *victim;

	for (int i = 0; i < FREED; i++)
		blocks[i] = malloc(SIZE);
	/* Nothing of this must end up in what another one is cut from. */
	kept[0] = malloc(SIZE);
	for (int i = 0; i < FREED; i++)
		free(blocks[i]);
	victim = hide(blocks[1]);
	if (strcmp(how, "link") == 0)
		memset(victim, 'W', sizeof(void *));
	if (strcmp(how, "key") == 0 || strcmp(how, "twice") == 0)
		memset(victim + sizeof(void *), 'K', sizeof(void *));
	if (strcmp(how, "twice") == 0)
		free(hide(victim));
	if (strcmp(how, "end") == 0) {
		victim = hide(large);
		free(large);
		memset(victim + LARGE, 'E', sizeof(size_t));
	}
	if (strcmp(how, "nothing") != 0)
		truth_damaged((uintptr_t)victim);
}

int main(int count, char **arguments)
{
	truth_open();
	truth_warm_up();
	for (int i = 0; i < BLOCKS; i++)
		kept[i] = malloc(SIZE);
	damage(count > 1 ? arguments[1] : "nothing");
	truth_ready();
}
