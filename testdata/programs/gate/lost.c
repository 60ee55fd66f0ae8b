/*
 * Ways to lose memory in one thread of a program, and the same done right.
 *
 *	lost CASE leak|clean
 *
 * Sizes are those that malloc() can use to the last byte, so that what it keeps for each block is
 * what was asked for.
 */
#include "testdata/programs/gate/cases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct node {
	struct node *next, *other;
	char name[24];
};

static struct node *make_node(struct node *next, struct node *other)
{
	struct node *node = calloc(1, sizeof(*node));

	if (!node)
		abort();
	node->next = next;
	node->other = other;
	return node;
}

static void plain(bool leak)
{
	for (int i = 0; i < 7; i++) {
		char *block = malloc(24 + 16 * (size_t)i);

		memset(block, 1, 24);
		if (!leak)
			free(block);
	}
}

static void chain(bool leak)
{
	struct node *list = NULL;

	for (int i = 0; i < 30; i++)
		list = make_node(list, NULL);
	while (!leak && list) {
		struct node *next = list->next;

		free(list);
		list = next;
	}
}

static void ring(bool leak)
{
	struct node *first = make_node(NULL, NULL);
	struct node *second = make_node(first, NULL);

	first->next = make_node(second, NULL);
	if (leak)
		return;
	free(first->next);
	free(second);
	free(first);
}

static struct node *make_tree(int depth)
{
	return depth == 0 ? NULL : make_node(make_tree(depth - 1), make_tree(depth - 1));
}

static void free_tree(struct node *tree)
{
	if (!tree)
		return;
	free_tree(tree->next);
	free_tree(tree->other);
	free(tree);
}

static void tree(bool leak)
{
	struct node *root = make_tree(5);

	if (!leak)
		free_tree(root);
}

static void grown(bool leak)
{
	char *buffer = NULL;

	for (size_t size = 24; size < 3000; size += 512)
		buffer = realloc(buffer, size);
	if (!leak)
		free(buffer);
}

static char *configuration;

static void configure(bool leak)
{
	if (!leak)
		free(configuration);
	configuration = malloc(104);
	memset(configuration, 2, 104);
}

/* The last one is kept by the variable, as it should be. */
static void overwritten(bool leak)
{
	for (int i = 0; i < 5; i++)
		configure(leak);
}

static void big(bool leak)
{
	/* The compiler may leave out what is not used. */
	char *volatile block = malloc(64 * 4096 - 24);

	if (!leak)
		free(block);
}

static void aligned(bool leak)
{
	void *block;

	for (int i = 0; i < 3; i++) {
		if (posix_memalign(&block, 256, 248) != 0)
			abort();
		memset(block, 4, 248);
		if (!leak)
			free(block);
	}
}

/* An error on the way out, after which nobody frees. */
static int parse(const char *text, bool leak)
{
	char *copy = malloc(40), *word;

	strcpy(copy, text);
	word = strtok(copy, ",");
	if (!word || strlen(word) > 8) {
		if (!leak)
			free(copy);
		return -EINVAL;
	}
	free(copy);
	return 0;
}

static void way_out(bool leak)
{
	parse("one,two", leak);
	parse("something too long,two", leak);
	parse("something else,two", leak);
}

/* The list is freed, what it held is not. */
static void members(bool leak)
{
	struct node *array[16], **copy = malloc(sizeof(array) + 8);

	for (int i = 0; i < 16; i++)
		array[i] = make_node(NULL, NULL);
	memcpy(copy, array, sizeof(array));
	for (int i = 0; !leak && i < 16; i++)
		free(copy[i]);
	memset(array, 0, sizeof(array));
	free(copy);
}

const struct leak_case cases[] = {
	{ "plain", plain },	{ "chain", chain },	{ "ring", ring },
	{ "tree", tree },	{ "realloc", grown },	{ "overwritten", overwritten },
	{ "big", big },		{ "aligned", aligned }, { "error-path", way_out },
	{ "members", members }, { NULL, NULL },
};
