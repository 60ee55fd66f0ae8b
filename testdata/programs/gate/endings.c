/*
 * Memory that is lost by a child after fork(), and by a program that a signal kills.
 *
 *	endings CASE leak|clean
 */
#include "testdata/programs/gate/cases.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static void lose(bool leak, int count)
{
	for (int i = 0; i < count; i++) {
		char *block = malloc(72);

		memset(block, 1, 72);
		if (!leak)
			free(block);
	}
}

static void in_child(bool leak)
{
	pid_t child = fork_noted();

	if (child == 0) {
		lose(leak, 4);
		forget();
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void by_signal(bool leak)
{
	lose(leak, 6);
	forget();
	raise(SIGTERM);
}

const struct leak_case cases[] = {
	{ "fork", in_child },
	{ "signal", by_signal },
	{ NULL, NULL },
};
