/* The program of multicall.c that runs. */
#include "truth.h"

struct item {
	struct item *next;
	long numbers[5];
};

struct globals {
	struct item *first, *last, *current, *spare;
	long count;
};

struct globals2 {
	long limit;
	struct item *input, *output, *errors, *log;
	long numbers[12];
};

void *multicall_begin(void);
void *multicall_lone(void);

static struct item *make_item(struct item *next)
{
	struct item *item = truth_zeroed_block(sizeof(*item));

	item->next = next;
	item->numbers[0] = 5;
	truth_number("item", (uintptr_t)item);
	return item;
}

static void fill(struct globals2 *second)
{
	second->limit = 70;
	second->input = make_item(make_item(NULL));
	second->output = make_item(NULL);
	second->errors = make_item(NULL);
	second->log = make_item(NULL);
}

void *multicall_begin(void)
{
	struct globals *first = truth_zeroed_block(sizeof(*first) + sizeof(struct globals2));

	first->first = make_item(make_item(NULL));
	first->last = first->first->next;
	first->current = make_item(NULL);
	first->spare = make_item(NULL);
	first->count = 4;
	fill((struct globals2 *)(first + 1));
	return first + 1;
}

void *multicall_lone(void)
{
	struct globals2 *second = truth_zeroed_block(sizeof(*second));

	fill(second);
	return second;
}
