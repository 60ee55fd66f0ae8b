/*
 * Shapes that reference counts or a look at direct references get wrong: rings, self-references,
 * trees and lists of lost blocks, beside the same shapes kept by one pointer.
 */

#include "truth.h"

#include <stdlib.h>

enum { LINKS = 3, TREE_DEPTH = 9, RINGS = 20 };

struct node {
	struct node *links[LINKS];
	char payload[];
};

typedef void (*verdict_function)(const void *block);

static struct node *volatile kept_ring;
static struct node *volatile kept_tree;
static char *volatile kept_list;
static struct node *volatile kept_self;

static struct node *node_create(size_t payload_size, verdict_function verdict)
{
	struct node *node = truth_block(sizeof(*node) + payload_size);

	for (size_t i = 0; i < LINKS; i++)
		node->links[i] = NULL;
	verdict(node);
	return node;
}

/* Returns one node of the ring, each of which points at or into the next. */
static struct node *ring_create(size_t count, size_t offset, verdict_function verdict)
{
	struct node *first = node_create(count, verdict);
	struct node *last = first;

	for (size_t i = 1; i < count; i++) {
		struct node *node = node_create(i % 300 + offset, verdict);

		last->links[i % LINKS] = (struct node *)((char *)node + offset);
		last = node;
	}
	last->links[1] = first;
	return first;
}

static struct node *tree_create(int depth, verdict_function verdict)
{
	struct node *node = node_create((size_t)depth * 10, verdict);

	if (depth == 0)
		return node;
	node->links[0] = tree_create(depth - 1, verdict);
	node->links[1] = tree_create(depth - 1, verdict);
	node->links[0]->links[2] = node;
	return node;
}

static struct node *list_create(size_t count, bool doubly, verdict_function verdict)
{
	struct node *head = NULL;

	for (size_t i = 0; i < count; i++) {
		struct node *node = node_create(i % 70, verdict);

		node->links[0] = head;
		if (head && doubly)
			head->links[1] = node;
		head = node;
	}
	return head;
}

static OUT_OF_LINE void populate_lost(void)
{
	for (size_t count = 1; count <= RINGS; count++)
		ring_create(count, 0, truth_lost);
	ring_create(1000, 16, truth_lost);

	struct node *self = node_create(0, truth_lost);

	self->links[0] = (struct node *)&self->links[1];
	tree_create(TREE_DEPTH, truth_lost);
	list_create(500, false, truth_lost);
	list_create(500, true, truth_lost);
}

static OUT_OF_LINE void populate_kept(void)
{
	kept_ring = ring_create(1000, 16, truth_kept);
	kept_tree = tree_create(TREE_DEPTH, truth_kept);
	kept_list = (char *)list_create(500, false, truth_kept) + 8;
	kept_self = ring_create(1, 0, truth_kept);
}

/* A lost ring that holds what is kept anyway, and a list cut in two. */
static OUT_OF_LINE void populate_mixed(void)
{
	struct node *ring = ring_create(7, 0, truth_lost);
	struct node *tail = list_create(30, false, truth_lost);
	struct node *middle = node_create(100, truth_kept);

	ring->links[2] = kept_tree;
	middle->links[0] = kept_ring->links[1];
	middle->links[1] = kept_self;
	kept_self->links[0] = middle;

	struct node *cut = truth_block(sizeof(*cut));

	cut->links[2] = tail;
	truth_free(cut);
}

int main(void)
{
	truth_open();
	truth_warm_up();
	populate_lost();
	populate_kept();
	populate_mixed();
	truth_ready();
}
