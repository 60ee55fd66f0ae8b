/*
 * More paths of members than heapcore tells apart: eight from each structure to the next, and
 * those of the last level all lead to one allocation, of a type that they do not tell.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LEVEL(name, next)                                   \
	struct name {                                       \
		struct next *a, *b, *c, *d, *e, *f, *g, *h; \
	}

struct seventh {
	void *a, *b, *c, *d, *e, *f, *g, *h;
};

LEVEL(sixth, seventh);
LEVEL(fifth, sixth);
LEVEL(fourth, fifth);
LEVEL(third, fourth);
LEVEL(second, third);
LEVEL(first, second);

struct first *first;

static void *make(int level, void *leaf)
{
	void **block = calloc(8, sizeof(*block));

	for (int i = 0; i < 8; i++)
		block[i] = level == 1 ? leaf : make(level - 1, leaf);
	return block;
}

int main(void)
{
	first = make(7, calloc(8, sizeof(long)));
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
