/*
 * Values in slabs, whose unions lead to other values, arrays, tables and texts: the lowest byte of
 * their flags, behind a count that changes, says to which. For each allocation a line
 * "ADDRESS TYPE".
 */
#include "truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLAB = 64, COUNT = 300 };

enum { TEXT = 1, REFERENCE, ARRAY, TABLE };

struct value {
	unsigned int count, flags;
	union {
		char *text;
		long number;
		struct value *value;
		struct value **array;
		struct pair **table;
	};
};

struct pair {
	struct pair *next;
	char *name;
	union {
		struct value *value;
		size_t users;
	};
};

struct value *slab;
static size_t used = SLAB;
struct value **all; /* nobody reads it: compilers would do without */

static void *make(size_t size, const char *type)
{
	void *block = calloc(1, size);

	printf("%p %s\n", block, type);
	return block;
}

static struct value *new_value(unsigned int kind)
{
	if (used == SLAB) {
		size_t *slab_size =
			make(SLAB * sizeof(*slab) + sizeof(*slab_size), "block with struct value");

		*slab_size = SLAB;
		slab = (struct value *)(slab_size + 1);
		used = 0;
	}
	slab[used].count = used % 5 == 0 ? 300 : 1 + (unsigned int)used % 3;
	slab[used].flags = kind | (unsigned int)used % 7 << 8;
	return &slab[used++];
}

static char *new_text(int number)
{
	char *text = make(20 + (size_t)number % 8, "char[]");

	snprintf(text, 20, "this text is of %d", number);
	return text;
}

static struct value *new_text_value(int number)
{
	struct value *value = new_value(TEXT);

	value->text = new_text(number);
	return value;
}

static struct value *new_reference(struct value *to)
{
	struct value *value = new_value(REFERENCE);

	value->value = to;
	return value;
}

static struct value *new_array(int number)
{
	struct value *value = new_value(ARRAY);
	int count = 3 + number % 4;

	value->array = make((size_t)count * sizeof(*value->array), "struct value *[]");
	for (int i = 0; i < count; i++)
		value->array[i] = new_text_value(number + i);
	return value;
}

static struct value *new_table(int number)
{
	struct value *value = new_value(TABLE);

	value->table = make(8 * sizeof(*value->table), "struct pair *[]");
	for (int i = 0; i < 16; i += 2) {
		struct pair *pair = make(sizeof(*pair), "struct pair");

		pair->name = new_text(i);
		pair->value = new_text_value(number + i);
		pair->next = value->table[i % 8];
		value->table[i % 8] = pair;
	}
	return value;
}

OUT_OF_LINE static void fill(void)
{
	all = make(COUNT * sizeof(struct value *), "struct value *[]");
	for (int i = 0; i < COUNT; i++)
		all[i] = i % 4 == 0   ? new_text_value(i)
			 : i % 4 == 1 ? new_reference(new_array(i))
			 : i % 4 == 2 ? new_array(i)
				      : new_reference(new_table(i));
	/* The few in the last slab would be too little evidence, so end it here. */
	slab = NULL;
}

int main(void)
{
	fill();
	truth_scrub();
	printf("ready\n");
	fflush(stdout);
	pause();
	return all != NULL;
}
