/*
 * Leaked allocations beside others of their types that are still held. For each that should be
 * known by these, a line "like NUMBER", its address; for each that looks like none or several, "not
 * NUMBER".
 */
#include "truth.h"

#include <stdlib.h>
#include <string.h>

struct conn {
	struct conn *next;
	char *peer;
	long received, sent;
};

/* Nobody can tell these two apart. */
struct left {
	char *name;
	long numbers[7];
};

struct right {
	char *title;
	long values[7];
};

enum { HELD = 40, LOST = 5 };

struct conn *volatile conns;
struct left *volatile lefts[HELD];
struct right *volatile rights[HELD];

OUT_OF_LINE static char *make_text(const char *text)
{
	char *copy = truth_zeroed_block(strlen(text) + 1);

	return strcpy(copy, text);
}

OUT_OF_LINE static struct conn *make_conn(struct conn *next)
{
	struct conn *conn = truth_zeroed_block(sizeof(*conn));

	conn->next = next;
	conn->peer = make_text("a peer that is far away");
	conn->received = 17;
	return conn;
}

OUT_OF_LINE static void hold_all(void)
{
	for (int i = 0; i < HELD; i++) {
		conns = make_conn(conns);
		lefts[i] = truth_zeroed_block(sizeof(*lefts[i]));
		lefts[i]->name = make_text("on the left");
		rights[i] = truth_zeroed_block(sizeof(*rights[i]));
		rights[i]->title = make_text("on the right");
	}
}

OUT_OF_LINE static void lose_all(void)
{
	struct conn *conn = NULL;
	struct left *left;
	void **other;

	for (int i = 0; i < LOST; i++) {
		conn = make_conn(conn);
		truth_number("like", (uintptr_t)conn);
		left = truth_zeroed_block(sizeof(*left));
		left->name = make_text("left alone");
		truth_number("not", (uintptr_t)left);
		/* A pointer where a connection has a number, and no pointer at all. */
		other = truth_zeroed_block(sizeof(*conn));
		other[2] = make_text("no connection");
		truth_number("not", (uintptr_t)other);
		other = truth_zeroed_block(sizeof(*conn));
		truth_number("not", (uintptr_t)other);
	}
}

int main(void)
{
	truth_open();
	hold_all();
	lose_all();
	truth_ready();
}
