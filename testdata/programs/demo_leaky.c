/*
 * A server in miniature that leaks. It answers orders until it is stopped, keeps the last answer
 * for each customer in a cache, and forgets to free the orders that it turns down.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CUSTOMERS = 100, ORDERS = 5000 };

struct order {
	char *customer;
	char *article;
	int quantity;
};

static struct order *cache[CUSTOMERS];

static struct order *order_create(int number)
{
	struct order *order = calloc(1, sizeof(*order));

	asprintf(&order->customer, "customer number %d", number % CUSTOMERS);
	asprintf(&order->article, "article %d of the catalogue", number);
	order->quantity = number % 17;
	return order;
}

static void order_destroy(struct order *order)
{
	if (!order)
		return;
	free(order->customer);
	free(order->article);
	free(order);
}

static void answer(int number)
{
	struct order *order = order_create(number);

	if (order->quantity == 0)
		return; /* nothing to deliver: and here it is lost */
	order_destroy(cache[number % CUSTOMERS]);
	cache[number % CUSTOMERS] = order;
}

int main(void)
{
	for (int number = 0; number < ORDERS; number++)
		answer(number);
	puts("ready");
	fflush(stdout);
	pause();
}
