/*
 * Arrays that only members of unions lead to, and arrays of nodes that refer to each other. For
 * each allocation a line "ADDRESS TYPE", with "?" where nothing in the program says it.
 */
#include "truth.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 40, ROOM = 8 };

/* The address of its kind says what a value holds. */
struct kind {
	const char *name;
	bool is_ordered;
};

struct value {
	int references;
	const struct kind *kind;
	union {
		double number;
		void *anything;
		struct {
			struct value **items;
			int count, room;
		} list;
		struct couple *couple;
		struct stranger *stranger;
	};
};

/* Memory does not tell it from a list of two. */
struct couple {
	struct value *left, *right;
};

/* As large as a list of five; its second member leads to what is larger than a value. */
struct stranger {
	struct value *part;
	struct page *page;
	struct value *others[3];
};

struct page {
	char text[200];
};

/* Most cells are numbers, so that nothing but the numbers beside the pointer says that they are. */
struct cell {
	union {
		double number;
		struct value *value;
	};
	char text[7], kind;
};

struct row {
	int kind;
	union {
		long number;
		struct {
			int count, room;
			struct cell *cells;
		} full;
		struct page *page;
	};
};

/* A tree whose nodes are made in one piece. */
struct node {
	int kind;
	struct value *value;
	struct node *left, *right;
};

struct tree {
	struct node *root, *nodes;
	long count;
};

/* Nodes of their own, in blocks with room for four. */
struct hop {
	long number;
	struct hop *next;
};

static const struct kind numbers = { "number", true }, lists = { "list", true },
			 couples = { "couple", false };

struct value *values[3 * COUNT]; /* nobody reads these: compilers would do without */
struct row rows[COUNT], odd_rows[COUNT];
struct tree trees[COUNT];
struct hop *hops;
struct page page;

static void *make(size_t size, const char *type)
{
	void *block = calloc(1, size);

	printf("%p %s\n", block, type);
	return block;
}

static struct value *make_value(const struct kind *kind, double number, const char *type)
{
	struct value *value = make(sizeof(*value), type);

	*value = (struct value){ .kind = kind, .references = 1, .number = number };
	return value;
}

static void make_list(struct value *value, int count)
{
	value->list.room = count < 4 ? 4 : count;
	value->list.items =
		make((size_t)value->list.room * sizeof(struct value *), "struct value *[]");
	for (value->list.count = 0; value->list.count < count; value->list.count++)
		value->list.items[value->list.count] =
			make_value(&numbers, value->list.count, "struct value");
}

static void make_couple(struct value *value)
{
	value->couple = make(sizeof(*value->couple), "?");
	value->couple->left = make_value(&numbers, 1, "?");
	value->couple->right = make_value(&numbers, 2, "?");
}

/* A stale pointer stands behind the cells that are used. */
static void make_cells(struct row *row, int count, int room, const char *type)
{
	struct cell *cells = make(ROOM * sizeof(*cells), type);

	row->full.cells = cells;
	row->full.count = count;
	row->full.room = room;
	for (int i = 0; i < ROOM; i++) {
		cells[i].number = i < count ? i + 0.5 : 0;
		cells[i].kind = 1;
	}
	memcpy((char *)&cells[count] + sizeof(double), &values[0], sizeof(values[0]));
}

static void make_tree(struct tree *tree, int count)
{
	tree->count = count;
	tree->root = tree->nodes = make((size_t)count * sizeof(struct node),
					count > 1 ? "struct node[]" : "struct node");
	for (int i = 0; i < count; i++) {
		struct node *node = &tree->nodes[i];

		node->kind = i;
		node->value = make_value(&numbers, i, "struct value");
		node->left = 2 * i + 1 < count ? &tree->nodes[2 * i + 1] : NULL;
		node->right = 2 * i + 2 < count ? &tree->nodes[2 * i + 2] : NULL;
	}
}

static void make_hop(int number)
{
	struct hop *hop = make(4 * sizeof(*hop), "block, beginning with struct hop");

	hop->number = number;
	hop->next = hops;
	hops = hop;
}

int main(void)
{
	for (int i = 0; i < COUNT; i++) {
		values[3 * i] = make_value(&lists, 0, "struct value");
		make_list(values[3 * i], i % 7 + 1);
		values[3 * i + 1] = make_value(&couples, 0, "struct value");
		make_couple(values[3 * i + 1]);
		values[3 * i + 2] = make_value(&numbers, i, "struct value");
		make_cells(&rows[i], i % 5 + 2, ROOM, "struct cell[]");
		make_cells(&odd_rows[i], i % 5 + 2, 100 + i, "?");
		odd_rows[i].kind = 1;
		make_tree(&trees[i], i % 6 + 1);
		make_hop(i);
	}
	printf("ready\n");
	fflush(stdout);
	pause();
	return 0;
}
