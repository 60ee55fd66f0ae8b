/*
 * Programs whose blocks are in one doubly linked list:
 *
 *	headers	a wrapper of malloc() chains all blocks; one in four is lost
 *	rings	the same by a ring through the middle of the header
 *	list	the list is all there is, and holds what is in use
 *	cache	a table has the addresses of half of the list; the others are in use, too
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 400 };

struct link {
	struct link *next, *previous;
};

struct header {
	struct header *next, *previous;
	size_t size;
	const char *file;
};

struct ring_header {
	size_t magic, size;
	struct link link;
	size_t line, padding;
};

struct node {
	struct node *next, *previous;
	char contents[];
};

static struct header *all;
static struct link ring = { &ring, &ring };
static struct node *list;
static void *kept[BLOCKS];

static void *get_chained(size_t size)
{
	struct header *header = calloc(1, sizeof(*header) + size);

	*header = (struct header){ all, NULL, size, __FILE__ };
	if (all)
		all->previous = header;
	all = header;
	return header + 1;
}

static void *get_ringed(size_t size)
{
	struct ring_header *header = calloc(1, sizeof(*header) + size);

	*header = (struct ring_header){ 0xfeed, size, { ring.next, &ring }, __LINE__, 0 };
	ring.next->previous = &header->link;
	ring.next = &header->link;
	return header + 1;
}

static struct node *get_node(size_t size)
{
	struct node *node = calloc(1, sizeof(*node) + size);

	node->next = list;
	if (list)
		list->previous = node;
	return list = node;
}

__attribute__((noinline)) static void fill(const char *mode)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		size_t size = 40 + i % 7 * 24;
		void *block = strcmp(mode, "headers") == 0 ? get_chained(size)
			      : strcmp(mode, "rings") == 0 ? get_ringed(size)
							   : get_node(size);

		if (strcmp(mode, "list") != 0 && (i % 4 || strcmp(mode, "cache") == 0) &&
		    (i % 2 || strcmp(mode, "cache") != 0))
			kept[i] = block;
	}
}

/* Registers and the stack have held addresses. */
__attribute__((noinline)) static void forget(void)
{
	volatile char room[4096];

	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = 0;
}

int main(int count, char *arguments[])
{
	fill(count > 1 ? arguments[1] : "headers");
	forget();
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		return 1;
	pause();
	return 0;
}
