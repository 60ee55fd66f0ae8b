/*
 * Leaked arrays, of which others are held. For each that should be known a line "item NUMBER", of
 * pointers to items, "point NUMBER", of points, "cell NUMBER", of cells, or "tree NUMBER", its
 * address; for each that should not, "not NUMBER".
 */
#include "truth.h"

#include <stdlib.h>

enum { BRANCHES = 75 };

struct item {
	long weight;
	struct shelf *shelf;
};

struct shelf {
	struct item **items;
	struct point *points;
	struct cell *cells;
	long count;
};

struct point {
	struct item *item;
	long place;
};

/* Nothing but pointers: two items may be one, or an array. */
struct couple {
	struct item *left, *right;
};

/* Most are numbers, so that all others of their size must be cells. */
struct cell {
	union {
		double number;
		struct item *item;
	};
	long kind, order;
};

/* Whatever stands in a tree is a pointer, and small numbers are none. */
struct tree {
	union {
		struct item *items[BRANCHES];
		struct tree *trees[BRANCHES];
	};
};

enum { HELD = 120, LOST = 3, ITEMS = 6, POINTS = 12, CELLS = 20 };

struct shelf *shelves[HELD];
struct couple *couple;
struct tree *trees[HELD];

OUT_OF_LINE static struct item *item_new(struct shelf *shelf, long weight)
{
	struct item *item = truth_zeroed_block(sizeof(*item));

	*item = (struct item){ weight, shelf };
	return item;
}

OUT_OF_LINE static struct item **items_new(struct shelf *shelf, int count)
{
	struct item **items = truth_zeroed_block((size_t)count * sizeof(struct item *));

	for (int i = 0; i < count; i++)
		items[i] = item_new(shelf, i);
	return items;
}

OUT_OF_LINE static struct point *points_new(struct shelf *shelf, int count)
{
	struct point *points = truth_zeroed_block((size_t)count * sizeof(*points));

	for (int i = 0; i < count; i++)
		points[i] = (struct point){ item_new(shelf, i), 100 + i };
	return points;
}

OUT_OF_LINE static struct cell *cells_new(int count)
{
	struct cell *cells = truth_zeroed_block((size_t)count * sizeof(*cells));

	for (int i = 0; i < count; i++)
		cells[i] = (struct cell){ .number = i + 0.5, .kind = 1, .order = i };
	return cells;
}

OUT_OF_LINE static struct tree *tree_new(int count)
{
	struct tree *tree = truth_zeroed_block(sizeof(*tree));

	for (int i = 0; i < count; i++)
		tree->items[i] = item_new(NULL, i);
	return tree;
}

OUT_OF_LINE static void hold_all(void)
{
	for (int i = 0; i < HELD; i++) {
		trees[i] = tree_new(i % 5 + 1);
		struct shelf *shelf = truth_zeroed_block(sizeof(*shelf));

		shelves[i] = shelf;
		shelf->items = items_new(shelf, ITEMS + i % 3);
		shelf->points = points_new(shelf, POINTS + i % 3);
		shelf->cells = cells_new(CELLS);
		shelf->cells[0].item = shelf->items[0];
	}
	couple = truth_zeroed_block(sizeof(*couple));
	couple->left = item_new(shelves[0], 1);
	couple->right = item_new(shelves[0], 2);
}

OUT_OF_LINE static void lose_all(void)
{
	for (int i = 0; i < LOST; i++) {
		struct shelf *shelf = shelves[i];
		long *numbers = truth_zeroed_block(ITEMS * sizeof(long));
		long *places = truth_zeroed_block(sizeof(struct tree));

		for (int j = 0; j < ITEMS; j++)
			numbers[j] = 1000 + j;
		numbers[1] = (long)shelf;
		places[0] = 21 + i;
		places[3] = (long)shelf->items[0];
		truth_number("item", (uintptr_t)items_new(shelf, ITEMS + 4 + i));
		truth_number("point", (uintptr_t)points_new(shelf, POINTS + 4 + i));
		truth_number("cell", (uintptr_t)cells_new(CELLS));
		truth_number("not", (uintptr_t)items_new(shelf, 2));
		truth_number("not", (uintptr_t)cells_new(CELLS + 4));
		truth_number("not", (uintptr_t)numbers);
		truth_number("tree", (uintptr_t)tree_new(4));
		truth_number("not", (uintptr_t)places);
	}
}

int main(void)
{
	truth_open();
	hold_all();
	lose_all();
	truth_ready();
}
