/*
 * Preloaded beside jemalloc: at a signal, SIGRTMIN + 5, say what jemalloc counts as allocated, then
 * "ready", and wait. Nothing is allocated for that.
 */

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

extern int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size);

static void say(int number)
{
	uint64_t epoch = 1;
	size_t allocated = 0, size = sizeof(allocated);
	char text[64];

	/* Statistics are of the moment when the epoch was set. */
	mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch));
	mallctl("stats.allocated", &allocated, &size, NULL, 0);
	size = (size_t)snprintf(text, sizeof(text), "allocated %zu\nready\n", allocated);
	if (write(STDOUT_FILENO, text, size) != (ssize_t)size)
		_exit(1);
	for (;;)
		pause();
}

__attribute__((constructor)) static void wait_for_signal(void)
{
	signal(SIGRTMIN + 5, say);
}
