/*
 * Structures to which no pointer with a type leads: for each a line with its address and type, "?"
 * if it must have none.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 200 };

struct symbol {
	char *name;
	uintptr_t contents; /* a pointer in disguise */
	struct symbol *context, *parent, *left, *right;
};

/* Two of one size, with pointers to the same. */
struct plus {
	struct plus *first, *second, *third, *fourth;
	long weight, height, depth;
};

struct minus {
	struct minus *first, *second, *third, *fourth;
	long weight, height, depth;
};

static volatile uintptr_t roots[2];
static struct minus *(*volatile unused)(struct minus *); /* has debug information name the type */

static void make_symbols(void)
{
	struct symbol *all[COUNT];

	for (int i = 0; i < COUNT; i++) {
		all[i] = calloc(1, sizeof(*all[i]));
		all[i]->name = malloc(40);
		memset(all[i]->name, 0, 40);
		snprintf(all[i]->name, 40, "the name of symbol %d", i);
		printf("%lx struct symbol\n", (unsigned long)all[i]);
	}
	for (int i = 0; i < COUNT; i++) {
		all[i]->contents = (uintptr_t)all[(i * 7 + 1) % COUNT];
		all[i]->context = all[0];
		all[i]->parent = all[i / 2];
		all[i]->left = all[2 * i + 1 < COUNT ? 2 * i + 1 : 0];
		all[i]->right = all[2 * i + 2 < COUNT ? 2 * i + 2 : 0];
	}
	roots[0] = (uintptr_t)all[0];
}

static void make_pluses(void)
{
	struct plus *all[COUNT];

	for (int i = 0; i < COUNT; i++) {
		all[i] = calloc(1, sizeof(*all[i]));
		printf("%lx ?\n", (unsigned long)all[i]);
	}
	for (int i = 0; i < COUNT; i++) {
		all[i]->first = all[(i + 1) % COUNT];
		all[i]->second = all[(i + 2) % COUNT];
		all[i]->third = all[(i + 3) % COUNT];
		all[i]->fourth = all[(i + 4) % COUNT];
	}
	roots[1] = (uintptr_t)all[0];
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	make_symbols();
	make_pluses();
	puts("ready");
	for (;;)
		pause();
}
