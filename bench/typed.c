/*
 * A program with a large heap in which debug information tells the type of each allocation.
 *
 *	typed [COUNT]
 *
 * It makes COUNT allocations (ten million if not said): an array of customers, whose orders are a
 * list in both directions and a tree; an order has an array of lines and a text. Neighbours in a
 * list are seldom neighbours in memory. They are as large as those of heap.c, 240 bytes on average
 * with malloc's own, so that a sum means the same. It then says how many it made, "used COUNT",
 * then "ready", and waits for its core to be taken.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CUSTOMERS = 1 << 16, LINES = 12, PER_ORDER = 3, TEXT = 128 };

struct line {
	uint64_t article;
	uint32_t amount, price;
};

struct order {
	struct order *next, **previous;
	struct customer *customer;
	struct line *lines;
	char *remark;
	struct order *left, *right;
	uint64_t number;
	double prices[40];
};

struct customer {
	struct order *orders, *tree;
	char *name;
	uint32_t order_count, id;
};

static struct customer **customers;
static uint64_t used;

static void *allocate(size_t size)
{
	void *block = calloc(1, size);

	if (!block) {
		perror("calloc");
		exit(1);
	}
	used++;
	return block;
}

static uint64_t random_of(uint64_t number)
{
	uint64_t x = (number + 1) * 0x9e3779b97f4a7c15;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static char *make_text(const char *what, uint64_t number)
{
	char *text = allocate(TEXT);

	snprintf(text, TEXT,
		 "%s %" PRIu64 ": to be sent by the end of the week, with all that belongs to it",
		 what, number);
	return text;
}

static void hang_into_tree(struct order **place, struct order *order)
{
	while (*place)
		place = random_of(order->number ^ (*place)->number) & 1 ? &(*place)->left
									: &(*place)->right;
	*place = order;
}

static void add_order(struct customer *customer, uint64_t number)
{
	struct order *order = allocate(sizeof(*order));

	order->number = number;
	order->customer = customer;
	order->lines = allocate(LINES * sizeof(*order->lines));
	for (size_t i = 0; i < LINES; i++)
		order->lines[i] = (struct line){ number % 1000 + i, 1 + number % 7, 100 };
	order->remark = make_text("order", number);
	order->next = customer->orders;
	order->previous = &customer->orders;
	if (order->next)
		order->next->previous = &order->next;
	customer->orders = order;
	customer->order_count++;
	hang_into_tree(&customer->tree, order);
}

static void add_customer(uint32_t id)
{
	struct customer *customer = allocate(sizeof(*customer));

	customer->id = id;
	customer->name = make_text("customer", id);
	customers[id] = customer;
}

int main(int argc, char **argv)
{
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;

	customers = allocate(CUSTOMERS * sizeof(*customers));
	for (uint32_t id = 0; id < CUSTOMERS; id++)
		add_customer(id);
	for (uint64_t number = 0; used + PER_ORDER <= count; number++)
		add_order(customers[random_of(number) % CUSTOMERS], number);
	printf("used %" PRIu64 "\nready\n", used);
	fflush(stdout);
	pause();
	return 0;
}
