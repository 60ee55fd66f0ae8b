/*
 * Nodes in slabs, whose unions hold all that they refer to, and whose tag and table of operations
 * stand behind or in the unions. For each allocation a line "ADDRESS TYPE", with "?" where nothing
 * in the program says it.
 */
#include "truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 40, SLAB = 50, ROOM = 16, KEYS = 24 };

enum kind { A_NUMBER = 7, A_TEXT, A_LIST, A_TABLE, A_LEAF };

struct node;

struct operations {
	const char *name;
	int (*count)(const struct node *node);
};

/* By text, or by numbers. */
union bucket {
	struct {
		union bucket *next;
		char *text;
		size_t length;
		struct node *name, *value;
	} by_text;
	struct {
		union bucket *next;
		long numbers[2];
		struct node *values[2];
	} by_number;
};

struct node {
	union {
		struct {
			union {
				struct node *other;
				long first;
				const struct operations *operations;
			} how;
			union {
				struct node *one;
				struct node **list;
				union bucket **buckets;
			} what;
			struct node *parent;
			char *name;
			int depth;
		} inner;
		struct {
			double number;
			char *text;
			size_t length;
			int index;
			struct node *original;
		} leaf;
	} sub;
	enum kind kind;
	int flags;
	long references;
};

/* A member that leads to bytes; the number beside it is not how many these are. */
struct odd {
	long kind;
	union {
		char *bytes;
		struct node *node;
	};
	long number;
};

static int count_list(const struct node *node)
{
	return node->sub.inner.depth;
}

static int count_table(const struct node *node)
{
	return node->sub.inner.depth + 1;
}

static const struct operations lists = { "list", count_list }, tables = { "table", count_table };

struct node *globals[COUNT]; /* nobody reads these: compilers would do without */
struct odd odd[COUNT];

static struct node *nodes;
static union bucket *buckets;
static size_t nodes_left, buckets_left;

static void *make(size_t size, const char *type)
{
	void *block = calloc(1, size);

	printf("%p %s\n", block, type);
	return block;
}

static struct node *make_node(enum kind kind)
{
	if (nodes_left == 0) {
		nodes = make(SLAB * sizeof(*nodes), "slab of struct node");
		nodes_left = SLAB;
	}
	nodes[--nodes_left] = (struct node){ .kind = kind, .references = 1 };
	return &nodes[nodes_left];
}

static union bucket *make_bucket(void)
{
	if (buckets_left == 0) {
		buckets = make(SLAB * sizeof(*buckets), "slab of union bucket");
		buckets_left = SLAB;
	}
	return &buckets[--buckets_left];
}

/* Parts of the text are joined by what cannot be printed. */
static char *make_text(int number, size_t *ret_length)
{
	char *text = make(KEYS, "char[]");

	*ret_length = (size_t)snprintf(text, KEYS, "%d\034name %d", number % 7, number);
	return text;
}

static struct node *make_leaf(int number)
{
	struct node *node = make_node(number % 3 ? A_NUMBER : A_TEXT);

	node->sub.leaf.number = number + 0.5;
	node->sub.leaf.index = -1;
	if (node->kind == A_TEXT)
		node->sub.leaf.text = make_text(number, &node->sub.leaf.length);
	return node;
}

/* The tree has its lists in nodes of another kind. */
static struct node *make_leaves(int first)
{
	struct node *node = make_node(A_LEAF);

	node->sub.inner.how.first = first;
	node->sub.inner.what.list = make(ROOM * sizeof(struct node *), "struct node *[]");
	for (int i = 0; i < ROOM; i++)
		node->sub.inner.what.list[i] = make_leaf(first + i);
	return node;
}

static struct node *make_list(int number)
{
	struct node *node = make_node(A_LIST);

	node->sub.inner.how.operations = &lists;
	node->sub.inner.what.list = make(ROOM * sizeof(struct node *), "struct node *[]");
	node->sub.inner.depth = 2;
	for (int i = 0; i < ROOM; i++)
		node->sub.inner.what.list[i] = make_leaves(number * ROOM + i);
	return node;
}

static struct node *make_table(int number)
{
	struct node *node = make_node(A_TABLE);

	node->sub.inner.how.operations = &tables;
	node->sub.inner.what.buckets = make(ROOM * sizeof(union bucket *), "union bucket *[]");
	for (int i = 0; i < 2 * ROOM; i++) {
		union bucket *bucket = make_bucket();

		bucket->by_text.next = node->sub.inner.what.buckets[i % ROOM];
		bucket->by_text.text = make_text(number + i, &bucket->by_text.length);
		bucket->by_text.value = make_leaf(i);
		node->sub.inner.what.buckets[i % ROOM] = bucket;
	}
	return node;
}

static void make_odd(struct odd *ret, int number)
{
	ret->bytes = make(KEYS, "?");
	ret->number = 3 + number % 9;
	memset(ret->bytes, 1 + number, KEYS - 4);
}

int main(void)
{
	for (int i = 0; i < COUNT; i++) {
		globals[i] = i % 2 ? make_list(i) : make_table(i);
		make_odd(&odd[i], i);
	}
	printf("ready\n");
	fflush(stdout);
	pause();
	return 0;
}
