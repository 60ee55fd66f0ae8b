/*
 * Leaked structures of which others are held, and what they alone refer to: for each a line with
 * the address and type that it looks like, "?" if it must look like none.
 */
#include "truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELD = 40, LOST = 6, MARKS = 100 };

struct note {
	struct conn *about;
	struct note *next;
	long times[6];
};

struct conn {
	struct conn *next;
	int *marks;
	struct note *note;
	struct conn *peer;
	long number;
};

static struct conn *volatile conns;

static OUT_OF_LINE void hold(void)
{
	for (long i = 0; i < HELD; i++) {
		struct conn *conn = calloc(1, sizeof(*conn));

		conn->next = conn->peer = conns;
		conn->number = i;
		conns = conn;
	}
}

static OUT_OF_LINE void lose(long number)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	conn->next = conn->peer = conns;
	conn->number = number;
	conn->marks = malloc(MARKS * sizeof(int));
	for (int i = 0; i < MARKS; i++)
		conn->marks[i] = i * number + 3;
	conn->note = calloc(1, sizeof(*conn->note));
	conn->note->about = conns;
	conn->note->times[3] = number;
	printf("%lx probably struct conn\n%lx probably int[]\n", (unsigned long)conn,
	       (unsigned long)conn->marks);
	/* An address where a note has a number. */
	if (number == 0)
		conn->note->times[2] = (long)conns;
	printf("%lx %s\n", (unsigned long)conn->note, number ? "probably struct note" : "?");
}

int main(void)
{
	truth_open();
	hold();
	for (long i = 0; i < LOST; i++)
		lose(i);
	fflush(stdout);
	truth_ready();
}
