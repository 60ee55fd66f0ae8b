/*
 * An allocation that a variable of a call holds at once, and a static variable by way of another.
 * Says so and waits to be cored.
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct node {
	struct node *next;
	char rest[80];
};

static struct node *volatile nodes;

int main(void)
{
	struct node *volatile on_stack[2] = { calloc(1, sizeof(struct node)) };

	nodes = calloc(1, 2 * sizeof(struct node));
	nodes->next = on_stack[0];
	puts("ready");
	fflush(stdout);
	pause();
	return on_stack[0] == NULL;
}
