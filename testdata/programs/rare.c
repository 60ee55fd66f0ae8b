/*
 * Lost structures that look like two types: 250 held ones are of one, and as many of the other one
 * as the argument says. For each lost one a line "lost ADDRESS".
 */
#include "truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HELD = 250, LOST = 6 };

struct order {
	struct order *next;
	char *name;
	long number;
};

struct spare {
	struct spare *before;
	char *text;
	long count;
};

static struct order *volatile orders;
static struct spare *volatile spares;

static struct order *make_order(struct order *next, long number)
{
	struct order *order = calloc(1, sizeof(*order));

	if (!order || !(order->name = strdup("a name that is long enough")))
		abort();
	order->next = next;
	order->number = number;
	return order;
}

OUT_OF_LINE static void fill(long others)
{
	struct order *lost = NULL;

	for (long i = 0; i < HELD; i++)
		orders = make_order(orders, i);
	for (long i = 0; i < others; i++) {
		struct spare *spare = calloc(1, sizeof(*spare));

		if (!spare || !(spare->text = strdup("a text that is long enough")))
			abort();
		spare->before = spares;
		spares = spare;
	}
	for (long i = 0; i < LOST; i++) {
		lost = make_order(lost, i);
		printf("lost %lx\n", (unsigned long)lost);
	}
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	fill(argc > 1 ? strtol(argv[1], NULL, 10) : 0);
	truth_scrub();
	puts("ready");
	for (;;)
		pause();
}
