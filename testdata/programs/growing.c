/*
 * A server in C that grows by as many connections and orders as it reads: "conns orders
 * lost" on a line of standard input, the lost ones connections. It answers "done".
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct order {
	struct order *next;
	double prices[11];
};

struct conn {
	struct conn *next;
	char *peer;
	long received;
	struct order *orders;
	int socket;
	long times[3];
};

static struct conn *conns;
static struct order *orders;

static struct conn *conn_create(int number)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	if (!conn || asprintf(&conn->peer, "peer number %d", number) < 0)
		abort();
	conn->socket = number;
	conn->received = 17;
	conn->orders = orders;
	return conn;
}

static void add_conns(int count)
{
	while (count-- > 0) {
		struct conn *conn = conn_create(count);

		conn->next = conns;
		conns = conn;
	}
}

static void add_orders(int count)
{
	while (count-- > 0) {
		struct order *order = calloc(1, sizeof(*order));

		if (!order)
			abort();
		order->next = orders;
		order->prices[0] = count;
		orders = order;
	}
}

/* In a frame that is gone when the core is taken. */
static __attribute__((noinline)) void lose_conns(int count)
{
	while (count-- > 0)
		conn_create(count)->next = conns;
}

static __attribute__((noinline)) void overwrite_stack(void)
{
	volatile char stack[4096];

	memset((void *)stack, 0, sizeof(stack));
}

int main(void)
{
	int more_conns, more_orders, lost;

	while (scanf("%d %d %d", &more_conns, &more_orders, &lost) == 3) {
		add_orders(more_orders);
		add_conns(more_conns);
		lose_conns(lost);
		overwrite_stack();
		puts("done");
		fflush(stdout);
	}
}
