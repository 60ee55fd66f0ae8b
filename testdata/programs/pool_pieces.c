/*
 * Blocks that are cut into pieces of several sizes, as mawk does: tables of nodes to which only a
 * "void *" leads, and structures that end in text. For each block a line "ADDRESS TYPE", with "?"
 * where nothing in the program says it.
 */
#include "truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TABLES = 4, ENDS = 64, NODES = 400, BLOCK = 2048 };

struct word {
	size_t length;
	unsigned int users;
	char text[2];
};

struct node {
	struct node *next;
	struct word *word;
	double value;
	long flags;
};

/* The first and the last of those that share a hash. */
struct ends {
	struct node *first, *last;
};

/* Code alone says what it leads to. */
struct table {
	void *entries;
	size_t count;
	unsigned int mask;
	short kind;
};

struct symbol {
	const char *name;
	char kind;
	union {
		struct table *table;
		double *number;
		const char *(*function)(void);
	};
};

/* The code takes these for ends, too, but they lead to numbers. */
struct odd {
	void *entries;
	long number;
};

struct symbol symbols[TABLES]; /* nobody reads these: compilers would do without */
struct odd odd[TABLES];

long seen;

static char *pool;
static size_t left;

static void *make(size_t size, const char *type)
{
	void *block = calloc(1, size);

	printf("%p %s\n", block, type);
	return block;
}

static void *cut(size_t size)
{
	size = (size + 7) / 8 * 8;
	if (left < size) {
		pool = make(BLOCK, "pieces");
		left = BLOCK;
	}
	left -= size;
	pool += size;
	return pool - size;
}

/* Not static, so that no compiler changes what they take. */
OUT_OF_LINE struct node *first_of(const struct ends *ends);
OUT_OF_LINE struct node *find(const struct table *table);
OUT_OF_LINE struct node *find_odd(const struct odd *from);

struct node *first_of(const struct ends *ends)
{
	return ends->first;
}

struct node *find(const struct table *table)
{
	return first_of(table->entries);
}

struct node *find_odd(const struct odd *from)
{
	return first_of(from->entries);
}

static struct word *make_word(int number)
{
	char text[32];
	int length = snprintf(text, sizeof(text), "word number %d", number);
	struct word *word = cut(sizeof(*word) + (size_t)length);

	word->length = (size_t)length;
	word->users = 1;
	memcpy(word->text, text, (size_t)length + 1);
	return word;
}

static void add_node(struct table *table, int number)
{
	struct ends *ends = table->entries;
	struct node *node = cut(sizeof(*node));

	ends += (unsigned int)number & table->mask;
	node->word = make_word(number);
	node->value = number * 0.5;
	node->flags = number;
	if (ends->last)
		ends->last->next = node;
	else
		ends->first = node;
	ends->last = node;
	table->count++;
}

static struct table *make_table(int number)
{
	struct table *table = cut(sizeof(*table));

	table->entries = make(ENDS * sizeof(struct ends), "struct ends[]");
	table->mask = ENDS - 1;
	table->kind = 2;
	for (int i = 0; i < NODES; i++)
		add_node(table, number * NODES + i);
	return table;
}

static void make_odd(struct odd *ret)
{
	double **numbers = make(2 * ENDS * sizeof(*numbers), "?");

	for (int i = 0; i < 2 * ENDS; i++) {
		numbers[i] = make(2 * sizeof(double), "?");
		numbers[i][0] = i + 0.5;
	}
	ret->entries = numbers;
}

int main(void)
{
	for (int i = 0; i < TABLES; i++) {
		symbols[i] = (struct symbol){ .name = "table", .kind = 4, .table = make_table(i) };
		make_odd(&odd[i]);
		seen += find(symbols[i].table) && symbols[i].table->count;
		seen += odd[i].number && find_odd(&odd[i]);
	}
	printf("ready\n");
	fflush(stdout);
	pause();
	return 0;
}
