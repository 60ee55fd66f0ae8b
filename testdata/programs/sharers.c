/*
 * Lists that several variables lead to: two by way of other allocations, one at once; five; and one
 * variable that is exported together with words that are not. Built with -rdynamic and stripped,
 * the program has names for those only that are not static.
 *
 * Writes "NAME BYTES" of each list, and waits.
 */

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 20, STACK = 1 << 16 };

struct node {
	struct node *next;
	char text[96];
};

struct node *volatile direct;
void *volatile *volatile table;
struct node *volatile behind;
struct node *volatile of_five[5];
struct node *volatile five_a, *volatile five_b, *volatile five_c, *volatile five_d;
struct node *volatile exported;
static struct node *volatile words[WORDS];

static size_t total;

static void *make(size_t size)
{
	void *block = malloc(size);

	if (!block)
		exit(1);
	memset(block, 0, size);
	total += malloc_usable_size(block);
	return block;
}

static struct node *make_list(const char *name, int count)
{
	struct node *first = NULL;

	total = 0;
	while (count--) {
		struct node *node = make(sizeof(*node));

		memset(node->text, 'a', sizeof(node->text));
		node->next = first;
		first = node;
	}
	printf("%s %zu\n", name, total);
	return first;
}

static __attribute__((noinline)) void make_all(void)
{
	direct = make_list("three", 8000);
	table = make(64 * sizeof(*table));
	table[7] = direct;
	behind = make(sizeof(*behind));
	behind->next = direct;
	of_five[0] = five_a = five_b = five_c = five_d = make_list("five", 4000);
	exported = make_list("exported", 6000);
	words[0] = exported;
}

static __attribute__((noinline)) void overwrite_stack(void)
{
	char stack[STACK];

	memset(stack, 0, sizeof(stack));
	__asm__ volatile("" ::"r"(stack) : "memory");
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	make_all();
	overwrite_stack();
	puts("ready");
	getchar();
	return 0;
}
