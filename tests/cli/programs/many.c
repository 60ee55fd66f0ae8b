/*
 * Allocations in numbers: 40,000 that are held, and 3 that are lost. Says so and waits to be cored.
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { HELD = 40000, LOST = 3, SIZE = 40 };

static void *held[HELD];

static void *volatile last;

int main(void)
{
	for (size_t i = 0; i < HELD; i++)
		held[i] = malloc(SIZE);
	for (size_t i = 0; i < LOST; i++)
		last = malloc(SIZE);
	last = NULL;
	puts("ready");
	fflush(stdout);
	pause();
	return held[0] == NULL;
}
