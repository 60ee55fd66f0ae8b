/*
 * A table of connections with a name each, a list, a buffer that two variables share, one on the
 * stack, and lost blocks. Writes how many bytes each owner holds.
 */
#include "truth.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct conn {
	struct conn *next;
	char *name;
	long number;
};

enum { CONNS = 100, JOBS = 50, LOST = 7 };

static struct conn **volatile conns;
static struct conn *volatile jobs;
static char *volatile first, *volatile second;

static size_t held;

static void *hold(size_t size)
{
	void *block = calloc(1, size);

	held += malloc_usable_size(block);
	return block;
}

static struct conn *make_conn(int number)
{
	struct conn *conn = hold(sizeof(*conn));

	conn->name = hold(40);
	snprintf(conn->name, 40, "the connection with number %d", number);
	conn->number = number;
	return conn;
}

static void say(const char *owner)
{
	printf("%s %zu\n", owner, held);
	held = 0;
}

static OUT_OF_LINE void fill(void)
{
	conns = hold(CONNS * sizeof(*conns));
	for (int i = 0; i < CONNS; i++)
		conns[i] = make_conn(i);
	say("conns");
	for (int i = 0; i < JOBS; i++) {
		struct conn *job = make_conn(i);

		job->next = jobs;
		jobs = job;
	}
	say("jobs");
	for (int i = 0; i < LOST; i++)
		make_conn(i);
	say("leaked");
	{
		char **pair = hold(24), **other = hold(24);

		pair[0] = other[0] = hold(5000);
		first = (char *)pair;
		second = (char *)other;
	}
	held = malloc_usable_size(*(char **)first);
	say("shared");
}

static OUT_OF_LINE void scrub(void)
{
	char rest[4096];

	explicit_bzero(rest, sizeof(rest));
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	fill();
	{
		void *volatile local = hold(3000);

		say("stack");
		scrub();
		puts("ready");
		for (;;)
			pause();
		free(local);
	}
}
