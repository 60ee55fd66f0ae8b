/*
 * Heads of lists in one block, which numbers beside the pointer count; values in blocks of bytes;
 * and arrays of pointers in pieces of blocks. For each block a line "ADDRESS TYPE".
 */
#include "truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	TABLES = 20,
	HEADS = 61,
	ENTRIES = 100,
	VALUES = 4,
	BUCKETS = 32,
	ITEMS = 300,
	BLOCK = 4096
};

struct head {
	long number;
	struct head *next;
};

struct table {
	struct head *heads;
	const struct head *limit;
	size_t count, used;
};

/* The number beside it is not that of its heads. */
struct uncounted {
	struct head *heads;
	size_t room;
};

struct value {
	int kind;
	union {
		double number;
		struct thing *thing;
		struct note *note;
	};
};

/* Values, and behind them what they are called. */
struct thing {
	unsigned char *parts;
	struct thing *next;
};

struct note {
	long length;
	struct note *other;
};

struct item {
	struct item *next;
	struct note *note;
	long key;
};

struct dictionary {
	struct item **buckets;
	struct item *first[4];
	long count;
};

struct table tables[TABLES]; /* nobody reads these: compilers would do without */
struct uncounted uncounted[TABLES];
struct thing *things;
struct dictionary *dictionary;

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
	if (left < size + 16) {
		pool = make(BLOCK, "pieces");
		left = BLOCK;
	}
	left -= size + 16;
	pool += size + 16;
	return pool - size;
}

/* Not static, so that no compiler changes what they take. */
OUT_OF_LINE void use_value(const struct value *value);
OUT_OF_LINE void use_part(const struct thing *thing, size_t at);

void use_value(const struct value *value)
{
	seen += value->kind;
}

void use_part(const struct thing *thing, size_t at)
{
	use_value((const struct value *)(const void *)(thing->parts + at));
}

static struct head *make_heads(int used)
{
	struct head *heads = make(HEADS * sizeof(*heads), used ? "struct head[]" : "uncounted");

	for (int i = 0; i < ENTRIES; i++) {
		struct head *head = &heads[i % HEADS];

		if (head->number) {
			struct head *entry = make(sizeof(*entry), used ? "struct head" : "?");

			entry->next = head->next;
			head->next = entry;
			head = entry;
		}
		head->number = i + 1;
	}
	return heads;
}

static struct note *make_note(int number)
{
	struct note *note = make(sizeof(*note), "struct note");

	note->length = number;
	note->other = number % 2 ? make(sizeof(*note), "struct note") : NULL;
	return note;
}

static void make_thing(int number)
{
	struct thing *thing = make(sizeof(*thing), "struct thing");
	struct value *values = make(VALUES * (sizeof(struct value) + sizeof(struct note *)),
				    "block with struct value");
	struct note **names = (struct note **)&values[VALUES];

	thing->parts = (unsigned char *)values;
	for (int i = 0; i < VALUES; i++) {
		values[i].kind = 1 + i % 2;
		if (i % 2)
			values[i].note = make_note(i);
		else
			values[i].number = number + 0.5;
		names[i] = make_note(number + i);
	}
	thing->next = things;
	things = thing;
}

static void make_dictionary(void)
{
	dictionary = cut(sizeof(*dictionary));
	dictionary->buckets = cut(BUCKETS * sizeof(struct item *));
	for (int i = 0; i < ITEMS; i++) {
		struct item *item = cut(sizeof(*item));

		item->next = dictionary->buckets[i % BUCKETS];
		item->note = make_note(i);
		item->key = i;
		dictionary->buckets[i % BUCKETS] = item;
		dictionary->first[i % 4] = item;
		dictionary->count++;
	}
}

int main(void)
{
	for (int i = 0; i < TABLES; i++) {
		tables[i] = (struct table){ .heads = make_heads(1), .count = HEADS };
		tables[i].limit = tables[i].heads + HEADS;
		uncounted[i] = (struct uncounted){ make_heads(0), 1000 };
		make_thing(i);
		use_part(things, sizeof(struct value));
	}
	make_dictionary();
	printf("ready\n");
	fflush(stdout);
	pause();
	return 0;
}
