/*
 * What the programs of this directory have in common: main(), which runs the
 * case that its arguments name, and leaves nothing of it on the dead part of
 * the stack, where a pointer would keep alive what it points to.
 */
#ifndef TESTDATA_PROGRAMS_GATE_CASES_H
#define TESTDATA_PROGRAMS_GATE_CASES_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct leak_case {
	const char *name;
	void (*run)(bool leak);
};

extern const struct leak_case cases[]; /* the last one without a name */

/* Overwrite what calls have left below the stack pointer. */
__attribute__((noinline)) static void forget(void)
{
	char room[32768];

	explicit_bzero(room, sizeof(room));
}

/* So far down that forget() reaches all of it, wherever its own room begins. */
__attribute__((noinline)) static void run_deep(const struct leak_case *one,
					       bool leak)
{
	char room[256];

	explicit_bzero(room, sizeof(room));
	one->run(leak);
	explicit_bzero(room, sizeof(room));
}

int main(int count, char **arguments)
{
	const struct leak_case *found = cases;

	while (count == 3 && found->name && strcmp(found->name, arguments[1]))
		found++;
	if (count != 3 || !found->name) {
		fprintf(stderr, "usage: %s CASE leak|clean\n", arguments[0]);
		return 2;
	}
	run_deep(found, strcmp(arguments[2], "leak") == 0);
	forget();
	return 0;
}

#endif
