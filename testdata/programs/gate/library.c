/*
 * A library that has memory of its own, and what becomes of it when it is unloaded, or the program
 * ends.
 */
#include <stdlib.h>
#include <string.h>

void library_start(int leak);

static char *registry;
static int leaking;

void library_start(int leak)
{
	leaking = leak;
	registry = malloc(168);
	memset(registry, 1, 168);
}

__attribute__((destructor)) static void library_end(void)
{
	if (!registry)
		return;
	/* To write something, one more block is had on the way out. */
	char *last = malloc(88);

	memset(last, 2, 88);
	if (!leaking) {
		free(last);
		free(registry);
	}
	registry = NULL;
}
