/*
 * Shared by the programs of this directory: main(), which runs the case that its arguments name,
 * and leaves nothing of it on the dead part of the stack, where a pointer would keep its target
 * alive.
 *
 *	PROGRAM CASE leak|clean		one case
 *	PROGRAM all leak|clean		each in a process of its own
 *
 * With all, a line "CASE process PID" is written for each, and for what it forks, and when it has
 * ended "CASE status N", which a shell would see.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct leak_case {
	const char *name;
	void (*run)(bool leak);
};

extern const struct leak_case cases[]; /* the last one without a name */

static const struct leak_case *current; /* NULL unless there are several */

/* Overwrite what calls have left below the stack pointer. */
__attribute__((noinline, unused)) static void forget(void)
{
	char room[40960];

	explicit_bzero(room, sizeof(room));
}

/* Leave stale words with a pointer to the block, which the program never uses. */
__attribute__((noinline, unused)) static void leave_stale(void *block)
{
	void *volatile room[4096];

	for (size_t i = 0; i < sizeof(room) / sizeof(*room); i++)
		room[i] = block;
}

/* fork(), with the child's number written down. */
__attribute__((unused)) static pid_t fork_noted(void)
{
	pid_t child = fork();

	if (child > 0 && current)
		dprintf(STDOUT_FILENO, "%s process %d\n", current->name, child);
	return child;
}

/* So far down that forget() reaches all of it, wherever its own room begins. */
__attribute__((noinline)) static void run_deep(const struct leak_case *one, bool leak)
{
	char room[256];

	explicit_bzero(room, sizeof(room));
	one->run(leak);
	explicit_bzero(room, sizeof(room));
}

/* True in the children, of which each has its current case. */
static bool fork_each(void)
{
	int status;

	for (current = cases; current->name; current++) {
		if (fork_noted() == 0)
			return true;
		wait(&status);
		dprintf(STDOUT_FILENO, "%s status %d\n", current->name,
			WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
	}
	return false;
}

int main(int count, char **arguments)
{
	const struct leak_case *found = cases;

	if (count == 3 && strcmp(arguments[1], "all") == 0) {
		if (!fork_each())
			return 0;
		found = current;
	}
	while (count == 3 && !current && found->name && strcmp(found->name, arguments[1]))
		found++;
	if (count != 3 || !found->name) {
		fprintf(stderr, "usage: %s CASE leak|clean\n", arguments[0]);
		return 2;
	}
	run_deep(found, strcmp(arguments[2], "leak") == 0);
#ifndef KEEP_STALE
	forget();
#endif
	return 0;
}
