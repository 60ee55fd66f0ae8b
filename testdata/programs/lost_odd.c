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

struct named {
	char name[8];
	struct named *next;
	long numbers[15];
};

/* Has no pointers. */
struct title {
	long length;
	char text[];
};

enum { HELD = 40, LOST = 3, TEXT_SIZE = 180, TITLE_SIZE = 230 };

struct node *volatile nodes;
struct item *volatile items;
struct plain *volatile plains;
struct variable *volatile variables;
struct alias *volatile aliases;
struct named *volatile named_ones;
char *volatile texts[2 * HELD];
struct title *volatile titles[HELD];

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

/* The text is shorter than what is behind it. */
OUT_OF_LINE static char *make_long_text(size_t size)
{
	char *text = truth_zeroed_block(size);
	char *itself = text;

	strcpy(text, "section");
	memcpy(text + 16, &itself, sizeof(itself));
	return text;
}

OUT_OF_LINE static struct named *make_named(struct named *next)
{
	struct named *named = truth_zeroed_block(sizeof(*named));

	strcpy(named->name, "section");
	named->next = next;
	return named;
}

OUT_OF_LINE static struct title *make_title(const char *text)
{
	struct title *title = truth_zeroed_block(TITLE_SIZE);

	title->length = (long)strlen(text);
	memcpy(title->text, text, strlen(text));
	return title;
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
		named_ones = make_named(named_ones);
		titles[i] = make_title("a title that is long enough");
		texts[i] = memset(truth_zeroed_block(TEXT_SIZE), 'x', TEXT_SIZE - 1);
		texts[HELD + i] = memset(truth_zeroed_block(sizeof(struct named)), 'x',
					 sizeof(struct named) - 1);
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
		truth_number("char", (uintptr_t)make_long_text(TEXT_SIZE));
		truth_number("not", (uintptr_t)make_long_text(sizeof(struct named)));
		truth_number("title", (uintptr_t)make_title("a title that was lost"));
		truth_number("not", (uintptr_t)make_title("\1\2\3\4\5\6\7"));
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
