/*
 * Leaked allocations whose words differ from what their members are declared as, as those of others
 * do that are held: short text in place of members, and a mark in place of a pointer. And
 * variables, which would look like aliases if these had no names; with an argument, some have none.
 * For each a line "TYPE NUMBER", its address; for one whose mark no held one has, "not NUMBER".
 */
#include "truth.h"

#include <stdlib.h>
#include <string.h>

struct owner {
	long number;
	struct owner *above;
};

struct node {
	struct node *next;
	char *content; /* short text stands in place of the members behind it */
	struct owner *first, *last;
	long line;
};

struct item {
	struct item *next;
	struct owner *owner; /* or a mark */
	char *name;
	long numbers[5];
};

/* As an item, but none has a mark. */
struct plain {
	struct plain *next;
	struct owner *owner;
	char *name;
	long numbers[9];
};

struct variable {
	struct variable *next;
	long flags;
	char *text;
	long numbers[11];
};

struct alias {
	struct alias *next;
	char *name, *text;
	long numbers[11];
};

enum { HELD = 40, LOST = 3 };

struct node *volatile nodes;
struct item *volatile items;
struct plain *volatile plains;
struct variable *volatile variables;
struct alias *volatile aliases;

static struct owner *const MARK = (struct owner *)-7;

OUT_OF_LINE static char *make_text(const char *text)
{
	char *copy = truth_zeroed_block(strlen(text) + 1);

	return strcpy(copy, text);
}

OUT_OF_LINE static struct node *make_node(struct node *next)
{
	struct node *node = truth_zeroed_block(sizeof(*node));

	node->next = next;
	node->content = (char *)&node->first;
	strcpy(node->content, "short text");
	return node;
}

OUT_OF_LINE static struct item *make_item(struct item *next, struct owner *owner)
{
	struct item *item = truth_zeroed_block(sizeof(*item));

	item->next = next;
	item->owner = owner;
	item->name = make_text("the name of an item");
	return item;
}

OUT_OF_LINE static struct plain *make_plain(struct plain *next, struct owner *owner)
{
	struct plain *plain = truth_zeroed_block(sizeof(*plain));

	plain->next = next;
	plain->owner = owner;
	plain->name = make_text("the name of a plain one");
	return plain;
}

OUT_OF_LINE static struct variable *make_variable(struct variable *next)
{
	struct variable *variable = truth_zeroed_block(sizeof(*variable));

	variable->next = next;
	variable->text = make_text("name=the value of a variable");
	return variable;
}

OUT_OF_LINE static struct alias *make_alias(struct alias *next, int has_name)
{
	struct alias *alias = truth_zeroed_block(sizeof(*alias));

	alias->next = next;
	alias->name = has_name ? make_text("the name of an alias") : NULL;
	alias->text = make_text("the text of an alias");
	return alias;
}

OUT_OF_LINE static void hold_all(int have_names)
{
	for (int i = 0; i < HELD; i++) {
		struct owner *owner = truth_zeroed_block(sizeof(*owner));

		nodes = make_node(nodes);
		items = make_item(items, i % 2 ? MARK : owner);
		plains = make_plain(plains, owner);
		variables = make_variable(variables);
		aliases = make_alias(aliases, have_names || i % 2);
	}
}

OUT_OF_LINE static void lose_all(void)
{
	struct node *node = NULL;
	struct item *item = NULL;
	struct plain *plain = NULL;
	struct variable *variable = NULL;

	for (int i = 0; i < LOST; i++) {
		truth_number("node", (uintptr_t)(node = make_node(node)));
		truth_number("item", (uintptr_t)(item = make_item(item, MARK)));
		truth_number("not", (uintptr_t)(plain = make_plain(plain, MARK)));
		truth_number("variable", (uintptr_t)(variable = make_variable(variable)));
	}
}

int main(int argc, char **argv)
{
	(void)argv;
	truth_open();
	hold_all(argc == 1);
	lose_all();
	truth_ready();
}
