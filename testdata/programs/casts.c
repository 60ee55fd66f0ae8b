/*
 * Allocations whose types no declaration tells, but the code that uses them, a tag, or what they
 * hold: for each a line "ADDRESS TYPE", with "?" where nothing in the program says it.
 */
#include "truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The type of an entry's value is known only to its user. */
struct entry {
	struct entry *next;
	void *value;
};

struct wallet {
	struct entry *coins;
	long amount;
	int currency;
};

struct ticket {
	char *place;
	struct entry *stamps;
	double price;
	long number;
};

/* The text stands behind it in the same block. */
struct sign {
	struct entry *posts;
	char *text;
};

/* The header of all objects, with a byte that says which they are. */
struct object {
	struct object *next;
	unsigned char kind;
};

enum kind { PAIR = 3, TEXT };

struct pair {
	struct object header;
	struct object *first, *second;
	long weight;
};

struct text {
	struct object header;
	char *characters;
	struct entry *marks;
	long size[4];
};

/* Values in slabs, of which only the headers are known. */
struct head {
	int kind, number;
};

struct branch {
	struct head head;
	struct entry *leaves;
	struct head *parent;
};

struct stone {
	struct head head;
	long weight, colour;
};

/* Lists that lead to the links in what they link, of which only code knows where it begins. */
struct link {
	struct link *next, *previous;
};

struct job {
	char *title;
	struct link jobs;
	struct entry *entries;
};

struct worker {
	long number;
	struct link workers;
	struct job *job;
};

enum { CRATES = 50 };

static struct link jobs = { &jobs, &jobs }, workers = { &workers, &workers },
		   others = { &others, &others };

static struct crate *crates, *more_crates;
static struct head *heads[100];
static struct stone stone;

/* One of two, as the kind says. */
struct variant {
	int kind;
	union {
		struct wallet *wallet;
		struct ticket *ticket;
	};
};

/* Only the name of the kind says which form it is. */
enum form { FORM_SQUARE, FORM_CIRCLE };

struct square {
	struct entry *corners;
	long side;
};

struct circle {
	struct entry *center;
	long radius;
};

struct shape {
	enum form form;
	union {
		struct square *square;
		struct circle *circle;
	};
};

/* Many in one block. */
struct piece {
	struct piece *next;
	struct entry *entries;
	long number;
};

/* Like struct piece, although one alone might fill the block with its label. */
struct crate {
	long number;
	struct crate *next;
	struct entry *entries;
	char label[];
};

/* A counted value is a list or a name; only its kind says which. */
struct counted {
	int count;
};

enum { NUMBER = 4, NAME, LIST };

struct value {
	unsigned char kind;
	int number;
	union {
		struct counted *counted;
		double real;
	};
};

struct list {
	struct counted counted;
	int length, room;
	struct value items[];
};

struct name {
	struct counted counted;
	unsigned int hash;
	char text[];
};

/* A stack of bytes, in which values stand below its end. */
struct stack {
	char *end;
	int top;
};

/* Items of any type. */
struct bag {
	void **items;
	int count;
};

struct note {
	struct entry *about;
	long day[5];
};

/* Bags of notes, most of which are empty. */
struct shelf {
	struct shelf *next;
	struct bag notes;
};

/* A number, or a text behind a header of its own. */
struct setting {
	long kind;
	union {
		void *text;
		unsigned long number;
	};
};

static struct entry *wallets, *tickets, *signs;
static struct object *objects;
struct variant variants[60]; /* nobody reads it: compilers would do without */
struct shape shapes[40];
static struct piece *pieces;
static struct bag bag;
static struct shelf *shelves;
struct setting settings[30];
static struct stack stack;

long seen;

static void *make(size_t size, const char *type)
{
	void *block = calloc(1, size);

	printf("%p %s\n", block, type);
	return block;
}

static struct entry *push(struct entry *list, void *value)
{
	struct entry *entry = make(sizeof(*entry), "struct entry");

	entry->next = list;
	entry->value = value;
	return entry;
}

static char *make_text(const char *text)
{
	return strcpy(make(strlen(text) + 1, "char[]"), text);
}

static struct wallet *make_wallet(long amount)
{
	struct wallet *wallet = make(sizeof(*wallet), "struct wallet");

	wallet->coins = push(NULL, NULL);
	wallet->amount = amount;
	return wallet;
}

static struct sign *make_sign(void)
{
	static const char text[] = "no entry but for those who wrote this sign";
	struct sign *sign = make(sizeof(*sign) + sizeof(text), "block, beginning with struct sign");

	sign->posts = push(NULL, NULL);
	sign->text = (char *)(sign + 1);
	strcpy(sign->text, text);
	return sign;
}

static struct ticket *make_ticket(long number)
{
	struct ticket *ticket = make(sizeof(*ticket), "struct ticket");

	ticket->place = make_text("in the third row, on the left");
	ticket->stamps = push(NULL, NULL);
	ticket->number = number;
	return ticket;
}

/* Not static, so that no compiler changes what they take. */
OUT_OF_LINE void use_wallet(const struct wallet *wallet);
OUT_OF_LINE void use_ticket(const struct ticket *ticket);
OUT_OF_LINE void use_sign(const struct sign *sign);
OUT_OF_LINE void use_value(const struct value *value);
OUT_OF_LINE void use_list(const struct list *list);
OUT_OF_LINE void use_name(const struct name *name);
OUT_OF_LINE void push_value(struct stack *to, struct value value);
OUT_OF_LINE void use_stack(const struct stack *from);
OUT_OF_LINE void use_note(const struct note *note);
OUT_OF_LINE void *find(const struct bag *from, int number);

void use_wallet(const struct wallet *wallet)
{
	seen += wallet->amount;
}

void use_sign(const struct sign *sign)
{
	seen += *sign->text;
}

void use_ticket(const struct ticket *ticket)
{
	seen += ticket->number;
}

void use_list(const struct list *list)
{
	for (int i = 0; i < list->length; i++)
		use_value(&list->items[i]);
}

void use_name(const struct name *name)
{
	seen += name->text[0];
}

void use_value(const struct value *value)
{
	if (value->kind == LIST)
		use_list((const struct list *)value->counted);
	else if (value->kind == NAME)
		use_name((const struct name *)value->counted);
}

void push_value(struct stack *to, struct value value)
{
	to->top -= (int)sizeof(value) + 8;
	memcpy(to->end + to->top, &value, sizeof(value));
}

void use_stack(const struct stack *from)
{
	for (int at = from->top; at < 0; at += (int)sizeof(struct value) + 8)
		use_value((const struct value *)(from->end + at));
}

void use_note(const struct note *note)
{
	seen += note->day[0];
}

void *find(const struct bag *from, int number)
{
	return number < from->count ? from->items[number] : NULL;
}

OUT_OF_LINE static void use_all(void)
{
	for (const struct entry *entry = wallets; entry; entry = entry->next)
		use_wallet(entry->value);
	for (const struct entry *entry = tickets; entry; entry = entry->next)
		use_ticket(entry->value);
	for (const struct entry *entry = signs; entry; entry = entry->next)
		use_sign(entry->value);
	for (int i = 0; i < bag.count; i++)
		use_note(find(&bag, i));
	for (const struct shelf *shelf = shelves; shelf; shelf = shelf->next)
		if (shelf->notes.count)
			use_note(find(&shelf->notes, 0));
	use_stack(&stack);
}

OUT_OF_LINE static void add_objects(int number)
{
	struct pair *pair = make(sizeof(*pair), "struct pair");
	struct text *text = make(sizeof(*text), "struct text");

	pair->header = (struct object){ objects, PAIR };
	pair->first = pair->second = objects;
	pair->weight = number;
	text->header = (struct object){ &pair->header, TEXT };
	text->characters = make_text("what this text is about");
	text->marks = push(NULL, NULL);
	objects = &text->header;
}

OUT_OF_LINE static void fill_pool(void)
{
	char *pool = make(8000, "block with struct piece");

	for (int i = 0; i < 100; i++) {
		struct piece *piece = (struct piece *)(pool + 64 + (size_t)i * 64);

		piece->next = pieces;
		piece->entries = push(NULL, NULL);
		piece->number = i;
		pieces = piece;
	}
}

/* From the slab's start on, or from its end on. */
OUT_OF_LINE static void fill_crates(struct crate **first, int forwards)
{
	char *slab = make(CRATES * 64, "block with struct crate");

	for (int i = 0; i < CRATES; i++) {
		struct crate *crate = (struct crate *)(slab + (size_t)i * 64);

		crate->number = i;
		crate->entries = push(NULL, NULL);
		sprintf(crate->label, "what is in crate %d", i);
		if (i < CRATES - 1 && forwards)
			crate->next = (struct crate *)((char *)crate + 64);
		else if (i > 0 && !forwards)
			crate->next = (struct crate *)((char *)crate - 64);
		if (i == (forwards ? 0 : CRATES - 1))
			*first = crate;
	}
}

OUT_OF_LINE static void fill_slab(void)
{
	char *slab = make(32 + 100 * sizeof(struct branch), "block with struct branch");

	for (int i = 0; i < 100; i++) {
		struct branch *branch = (struct branch *)(slab + 32) + i;

		branch->head = (struct head){ 5, i };
		branch->leaves = push(NULL, NULL);
		branch->parent = i ? heads[i / 2] : NULL;
		heads[i] = &branch->head;
	}
}

static struct value make_name(int number)
{
	const char text[] = "what everybody calls it, even those who never saw it";
	size_t length = sizeof(text) - (size_t)number % 30;
	struct name *name = make(sizeof(*name) + length, "struct name");

	name->counted.count = 1;
	memcpy(name->text, text, length - 1);
	return (struct value){ .kind = NAME, .counted = &name->counted };
}

static struct value make_list(int length, int depth)
{
	struct list *list =
		make(sizeof(*list) + sizeof(list->items[0]) * (size_t)length, "struct list");

	list->counted.count = 1;
	list->length = length;
	list->room = length + 300; /* its bytes are no text */
	for (int i = 0; i < length; i++)
		list->items[i] = i % 3 == 0 && depth ? make_list(4, depth - 1)
				 : i % 3 == 1	     ? (struct value){ .kind = NUMBER, .real = i }
						     : make_name(i);
	return (struct value){ .kind = LIST, .counted = &list->counted };
}

OUT_OF_LINE static void fill_stack(void)
{
	char *bytes = make(2000, "block with struct value");

	stack.end = bytes + 1960;
	push_value(&stack, make_list(60, 2));
	push_value(&stack, make_name(7));
	push_value(&stack, (struct value){ .kind = NUMBER, .real = 0.5 });
}

static struct note *make_note(void)
{
	struct note *note = make(sizeof(*note), "struct note");

	note->about = push(NULL, NULL);
	return note;
}

OUT_OF_LINE static void fill_shelves(void)
{
	for (int i = 0; i < 40; i++) {
		struct shelf *shelf = make(sizeof(*shelf), "struct shelf");

		shelf->next = shelves;
		shelf->notes.items = make(7 * sizeof(void *), "struct note *[]");
		shelf->notes.count = i % 8 ? 0 : 3;
		for (int j = 0; j < shelf->notes.count; j++)
			shelf->notes.items[j] = make_note();
		shelves = shelf;
	}
}

OUT_OF_LINE static void fill_settings(void)
{
	for (int i = 0; i < 30; i++) {
		const char text[] = "how it is meant to be set";
		char *block = make(3 + sizeof(text), i % 3 ? "char[]" : "?");

		settings[i].kind = i % 3;
		settings[i].number = (unsigned long)i;
		memcpy(block, (unsigned char[]){ 0xff, 1, 0x90 }, 3);
		strcpy(block + 3, text);
		if (i % 3)
			settings[i].text = block + 3;
		else
			settings[i].text = strcpy(block, text);
	}
}

static void add_link(struct link *list, struct link *link)
{
	link->previous = list;
	link->next = list->next;
	list->next->previous = link;
	list->next = link;
}

OUT_OF_LINE static void fill_lists(void)
{
	for (int i = 0; i < 30; i++) {
		struct job *job = make(sizeof(*job), "struct job");
		struct worker *worker = make(sizeof(*worker), "struct worker");
		/* The program has no structure for these. */
		struct link *other = make(80, "?"); /* a link says nothing of it */

		job->title = make_text("what is to be done");
		job->entries = push(NULL, NULL);
		worker->number = i;
		worker->job = job;
		add_link(&jobs, &job->jobs);
		add_link(&workers, &worker->workers);
		add_link(&others, other);
		((struct link **)other)[3] = other;
	}
}

OUT_OF_LINE static void fill(void)
{
	for (int i = 0; i < 200; i++) {
		wallets = push(wallets, make_wallet(i));
		tickets = push(tickets, make_ticket(i));
		signs = push(signs, make_sign());
		add_objects(i);
	}
	for (int i = 0; i < 60; i++) {
		variants[i].kind = i % 2 ? 7 : 8;
		if (i % 2)
			variants[i].wallet = make_wallet(i);
		else
			variants[i].ticket = make_ticket(i);
	}
	for (int i = 0; i < 40; i++) {
		struct square *square =
			make(sizeof(*square), i % 2 ? "struct square" : "struct circle");

		square->corners = push(NULL, NULL);
		square->side = i;
		shapes[i].form = i % 2 ? FORM_SQUARE : FORM_CIRCLE;
		shapes[i].square = square;
	}
	bag.count = 50;
	bag.items = make(50 * sizeof(*bag.items), "struct note *[]");
	for (int i = 0; i < 50; i++)
		bag.items[i] = make_note();
	fill_shelves();
	fill_settings();
	fill_lists();
	fill_pool();
	fill_crates(&crates, 1);
	fill_crates(&more_crates, 0);
	fill_slab();
	fill_stack();
	stone.weight++;
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	fill();
	use_all();
	puts("ready");
	for (;;)
		pause();
}
