/*
 * A table of "void *" that keeps what was deleted: its own pointer is null. Some that were deleted
 * are lost, too. With an argument there is a second table, in which numbers stand among the
 * entries. Lines say where each one is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KEPT = 20, DELETED = 60, LOST = 5 };

struct symbol {
	struct entry *owner;
	char name[40];
};

struct entry {
	struct symbol *symbol;
};

struct number {
	long value;
};

struct node {
	struct node *next;
	void *data;
};

struct mixed_node {
	struct mixed_node *next;
	void *data;
	long count;
};

static struct node *table;
static struct mixed_node *mixed;
static struct symbol *symbols[2 * KEPT] __attribute__((used));
static size_t symbol_count;

static struct entry *make_entry(int is_deleted, const char *word)
{
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!is_deleted) {
		entry->symbol = calloc(1, sizeof(*entry->symbol));
		entry->symbol->owner = entry;
		symbols[symbol_count++] = entry->symbol;
	}
	printf("%s %lx\n", word, (unsigned long)entry);
	return entry;
}

static void add(void *data)
{
	struct node *node = malloc(sizeof(*node));

	*node = (struct node){ table, data };
	table = node;
}

static void add_mixed(void *data)
{
	struct mixed_node *node = malloc(sizeof(*node));

	*node = (struct mixed_node){ mixed, data, 7 };
	mixed = node;
}

static struct number *make_number(long value)
{
	struct number *number = malloc(sizeof(*number));

	number->value = value;
	printf("number %lx\n", (unsigned long)number);
	return number;
}

static void fill_mixed(void)
{
	for (int i = 0; i < KEPT; i++) {
		add_mixed(make_entry(0, "other"));
		add_mixed(make_number(i + 1));
		add_mixed(make_number(0));
	}
}

static __attribute__((noinline)) void lose(void)
{
	for (int i = 0; i < LOST; i++)
		make_entry(1, "lost");
}

/* Lost pointers may stand in old frames. */
static __attribute__((noinline)) void clear_stack(void)
{
	volatile char stack[1 << 14];

	for (size_t i = 0; i < sizeof(stack); i++)
		stack[i] = 0;
}

int main(int count, char **arguments)
{
	(void)arguments;
	for (int i = 0; i < KEPT; i++)
		add(make_entry(0, "entry"));
	for (int i = 0; i < DELETED; i++)
		add(make_entry(1, "entry"));
	if (count > 1)
		fill_mixed();
	lose();
	clear_stack();
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
