/*
 * Allocates from the Boehm collector in debug mode, in which each object is preceded by who made
 * it, prints "ready", and waits.
 */
#define GC_DEBUG
#include <gc/gc.h>
#include <stdio.h>
#include <unistd.h>

enum { NODES = 20, TEXTS = 7 };

struct node {
	struct node *next;
	char *text;
	long values[4];
};

struct node *head;

int main(void)
{
	GC_INIT();
	for (int i = 0; i < NODES; i++) {
		struct node *node = GC_MALLOC(sizeof(*node)); /* a node */

		node->next = head;
		if (i < TEXTS)
			node->text = GC_MALLOC_ATOMIC(100); /* a text */
		head = node;
	}
	puts("ready");
	fflush(stdout);
	pause();
	return head == NULL;
}
