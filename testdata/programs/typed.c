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
	void *wrapping;
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

/* Most have the first two members only. */
struct route {
	char *host;
	struct route *next;
	struct customer *customer;
	char description[200];
};

/* Later blocks of a pool begin with a span only. */
struct span {
	char *free, *end;
	struct pool *next;
};

struct pool {
	struct span span;
	size_t largest;
	struct pool *current;
	long counts[5];
};

struct seat {
	struct customer *taken_by;
	long row;
};

/* Each of two leads to the other one, which its variable calls something smaller. */
struct lid {
	struct ribbon *ribbon;
	struct lid *below;
};

struct box {
	struct ribbon *ribbon;
	struct lid *below;
	long numbers[4];
};

struct ribbon {
	struct box *box;
	long length;
};

/* A part of a block refers to the block. */
struct hull {
	struct hull *next;
	long length;
};

struct cabin {
	struct hull *hull;
	struct customer *captain;
};

/* As another unit would: the name alone is known here. */
struct hidden;

static struct shop shop;
struct customer *best;
struct hidden *hidden;
__thread struct order *last_order;
struct expression *sum;
struct route *routes;
char *reused;
struct pool *pool;
struct lid *lid;
char **nicknames; /* malloc may give just so much for two of them, too */
struct cabin *cabin;
/* Whichever is followed first: one of them leads to the start of an array. */
struct seat *first_free, *seats, *last_free;

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
		order->wrapping = make(56, "?");
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

OUT_OF_LINE static void fill_routes(void)
{
	for (int i = 0; i < 10; i++) {
		struct route *route =
			make(offsetof(struct route, customer), "part of struct route");

		route->host = strcpy(make(20, "char[]"), "the next host");
		route->next = routes;
		routes = route;
	}
}

/* Text in a block of which the last word was a pointer before. */
static char *make_reused(void)
{
	char *text = make(24, "char[]"), *old = text;

	memcpy(text + 16, &old, sizeof(old));
	return strcpy(text, "not so long");
}

static struct pool *make_span(struct pool *next, const char *type)
{
	enum { SIZE = 1000 };
	struct pool *block = make(SIZE, type);

	block->span = (struct span){ (char *)block + 200, (char *)block + SIZE, next };
	return block;
}

OUT_OF_LINE static void fill_pool(void)
{
	struct pool *next = NULL;

	for (int i = 0; i < 4; i++) {
		next = make_span(next, i ? "block, beginning with struct span" : "?");
		/* One looks like more of a pool. */
		((struct span **)(&next->span + 1))[i == 2 ? 3 : 0] = &next->span;
	}
	pool = make_span(next, "block, beginning with struct pool");
	pool->current = next;
}

OUT_OF_LINE static void fill_seats(void)
{
	seats = make(30 * sizeof(*seats), "struct seat[]");
	for (int i = 0; i < 30; i++)
		seats[i] = (struct seat){ best, i };
	first_free = &seats[10];
	last_free = &seats[20];
}

OUT_OF_LINE static void fill_circles(void)
{
	struct box *box = make(sizeof(*box), "struct box");
	char *hull = make(200, "block, beginning with struct hull");

	box->ribbon = make(sizeof(*box->ribbon), "struct ribbon");
	box->ribbon->box = box;
	lid = (struct lid *)box;
	cabin = (struct cabin *)(hull + 64);
	*cabin = (struct cabin){ (struct hull *)hull, best };
}

OUT_OF_LINE static void fill_nicknames(void)
{
	nicknames = make(3 * sizeof(*nicknames), "char *[]");
	for (int i = 0; i < 3; i++)
		nicknames[i] = make_text("the one with the hat");
}

OUT_OF_LINE static void fill_all(struct shop *local)
{
	reused = make_reused();
	shop.count = 50;
	shop.customers = make(64 * sizeof(*shop.customers), "struct customer[]");
	for (int i = 0; i < 50; i++)
		fill(&shop.customers[i], i);
	best = make(sizeof(*best), "struct customer");
	fill_routes();
	fill_pool();
	fill_seats();
	fill_circles();
	fill_nicknames();
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
