/*
 * More paths of kinds than an ownership tree has nodes. No allocation has a type or a signature, so
 * its size is its kind; below each hang allocations of all sizes that are not above it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KINDS = 9, MOST = 300000, SMALLEST = KINDS * sizeof(void *), STEP = 16 };

void *top[KINDS];
static int made;

static void *grow(unsigned int above, size_t kind)
{
	void **block;

	if (made == MOST)
		return NULL;
	made++;
	block = calloc(1, SMALLEST + STEP * kind);
	above |= 1U << kind;
	for (size_t i = 0; block && i < KINDS; i++)
		if (!(above >> i & 1))
			block[i] = grow(above, i);
	return block;
}

int main(void)
{
	for (size_t i = 0; i < KINDS; i++)
		top[i] = grow(0, i);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
