/* A list of a hundred items that a static variable holds, for each way to link a program. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct item {
	struct item *next;
	long number;
};

static struct {
	long count;
	struct item *volatile items;
} shop;

/* An address that is relocated. */
static struct item *volatile *const first = &shop.items;

int main(void)
{
	for (; shop.count < 100; shop.count++) {
		struct item *item = malloc(sizeof(*item));

		item->next = *first;
		item->number = shop.count;
		shop.items = item;
	}
	printf("&shop.items %lu\nready\n", (unsigned long)&shop.items);
	fflush(stdout);
	for (;;)
		pause();
}
