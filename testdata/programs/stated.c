/*
 * Allocations of types that debug information describes; to some, no pointer with the type leads.
 * For the first of each chain, a line "NAME ADDRESS".
 *
 *	vault, a void *  ->  hidden: struct conn  ->  .next: 4 more, each with a text
 *	conns            ->  3 of struct conn, the second of which another variable leads to, too
 *	nothing          ->  lost: struct conn    ->  .next: 1 more, each with a text
 */
#include "truth.h"

#include <stdint.h>
#include <string.h>

struct conn {
	struct conn *next;
	char *peer;
	long received, sent, failed;
};

/* As large as its debug information says, and never used. */
struct wide {
	long numbers[40];
} wide;

/* Two types have this name; the other one is local to a function. */
struct twin {
	long numbers[9];
} twin;

struct conn *volatile conns, *volatile second;
void *volatile vault, *volatile narrow, *volatile broad;

/* Without a pointer to the structure, so that no code says what it is. */
OUT_OF_LINE static void **make_conn(void **next)
{
	void **words = truth_zeroed_block(sizeof(struct conn));
	char *text = truth_zeroed_block(100);

	words[0] = next;
	words[1] = strcpy(text, "a peer that is far away");
	return words;
}

OUT_OF_LINE static void **make_chain(const char *name, int length)
{
	void **chain = NULL;

	for (int i = 0; i < length; i++)
		chain = make_conn(chain);
	truth_number(name, (uintptr_t)chain);
	return chain;
}

OUT_OF_LINE static void make_all(void)
{
	static volatile struct twin {
		long numbers[2];
	} local;
	void **held = make_chain("held", 3);

	conns = (struct conn *)held;
	second = held[0];
	truth_number("second", (uintptr_t)held[0]);
	vault = make_chain("hidden", 5);
	narrow = truth_zeroed_block(sizeof(struct conn) / 2);
	truth_number("narrow", (uintptr_t)narrow);
	broad = truth_zeroed_block(sizeof(twin));
	truth_number("broad", (uintptr_t)broad);
	local.numbers[0] = 1;
	make_chain("lost", 2);
}

int main(void)
{
	truth_open();
	make_all();
	truth_ready();
}
