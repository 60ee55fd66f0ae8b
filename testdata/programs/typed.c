/*
 * Allocations of types that debug information tells of, and what each is of: for each a line
 * "ADDRESS TYPE", with "?" where nothing in the program says it.
 */
#include "truth.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct order {
	struct order *next;
	char *note;
	int amount;
	double price;
};

/* Its last member is as long as it needs to be. */
struct label {
	short length;
	char text[];
};

typedef struct {
	double x, y;
} point;

enum colour { RED, GREEN = 4, BLUE };

struct shape {
	int sides;
	enum colour colour;
	unsigned int is_filled : 1;
	signed int shade : 5;
	char title[12];
	point *corners;
};

struct customer {
	char *name;
	struct order *orders;
	struct label *label;
	struct customer **friends;
	int *scores;
	void *extra;
	union {
		struct shape *shape;
		long number;
	};
	int has_shape;
};

struct shop {
	struct customer *customers;
	size_t count;
};

/* A leaf has the first two members only, and its text behind them. */
struct expression {
	int operator;
	char *text;
	struct expression *left, *right;
	double weights[4];
};

/* As another unit would: the name alone is known here. */
struct hidden;

static struct shop shop;
struct customer *best;
struct hidden *hidden;
__thread struct order *last_order;
struct expression *sum;
char *reused;

static void *make(size_t size, const char *type)
{
	void *block = calloc(1, size);

	printf("%p %s\n", block, type);
	return block;
}

static char *make_text(const char *text)
{
	char *copy = make(strlen(text) + 1, "char[]");

	return strcpy(copy, text);
}

OUT_OF_LINE static void fill(struct customer *customer, int number)
{
	char name[40];

	snprintf(name, sizeof(name), "customer number %d", number);
	customer->name = make_text(name);
	for (int i = 0; i < number % 5; i++) {
		struct order *order = make(sizeof(*order), "struct order");

		order->next = customer->orders;
		order->note = i % 2 ? make_text("to be delivered at the back door") : NULL;
		order->amount = i;
		customer->orders = order;
	}
	customer->label = make(sizeof(struct label) + 30 + (size_t)number, "struct label");
	customer->friends = make(10 * sizeof(*customer->friends), "struct customer *[]");
	for (int i = 0; i < 10; i++)
		customer->friends[i] = &shop.customers[i];
	customer->scores = make(20 * sizeof(int), "int[]");
	customer->extra = make(200, "?");
	customer->has_shape = number % 2;
	if (customer->has_shape) {
		customer->shape = make(sizeof(struct shape), "struct shape");
		customer->shape->sides = 3 + number;
		customer->shape->colour = GREEN;
		customer->shape->is_filled = 1;
		customer->shape->shade = -3;
		strcpy(customer->shape->title, "round");
		customer->shape->corners =
			make((size_t)customer->shape->sides * sizeof(point), "point[]");
	} else {
		customer->number = number;
	}
}

static struct expression *make_leaf(const char *text)
{
	const size_t size = offsetof(struct expression, left);
	struct expression *leaf = make(size + strlen(text) + 1, "part of struct expression");

	leaf->operator= 'n';
	leaf->text = (char *)leaf + size;
	strcpy(leaf->text, text);
	return leaf;
}

/* Text in a block of which the last word was a pointer before. */
static char *make_reused(void)
{
	char *text = make(24, "char[]"), *old = text;

	memcpy(text + 16, &old, sizeof(old));
	return strcpy(text, "not so long");
}

OUT_OF_LINE static void fill_all(struct shop *local)
{
	reused = make_reused();
	shop.count = 50;
	shop.customers = make(64 * sizeof(*shop.customers), "struct customer[]");
	for (int i = 0; i < 50; i++)
		fill(&shop.customers[i], i);
	best = make(sizeof(*best), "struct customer");
	hidden = make(72, "?");
	last_order = make(sizeof(*last_order), "struct order");
	sum = make(sizeof(*sum), "struct expression");
	sum->left = make_leaf("one");
	sum->right = make_leaf("another");
	local->customers = make(2 * sizeof(*local->customers), "struct customer[]");
}

int main(void)
{
	struct shop local = { NULL, 2 };

	setvbuf(stdout, NULL, _IONBF, 0);
	fill_all(&local);
	puts("ready");
	for (;;) {
		/* Compilers would do without what nobody reads. */
		__asm__ volatile("" : : "r"(&local) : "memory");
		pause();
	}
}
