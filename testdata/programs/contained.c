/*
 * Structures that end in a name, to which only pointers to the names lead: for each allocation a
 * line "ADDRESS TYPE", with "?" where nothing in the program says it.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 40, KINDS = 2 };

/* A number or a text, by its kind. */
struct member {
	union {
		long number;
		char *text;
	} value;
	char kind;
	char name[1];
};

/* Nothing distinguishes these two structures. */
struct left {
	int number, other;
	short third;
	char name[1];
};

struct right {
	short numbers[5];
	char name[1];
};

/* An allocator's own two words in front of a text look like the first members of it. */
struct label {
	long length, spare;
	char text[];
};

struct registry {
	char *members[KINDS][COUNT];
	char *either[COUNT];
	char *texts[COUNT];
	struct label *label;
	struct left *left;
	struct right *right;
} all; /* external, so that all is written */

static void *make(size_t size, const char *type)
{
	void *block = calloc(1, size);

	if (!block)
		abort();
	printf("%#zx %s\n", (size_t)block, type);
	return block;
}

static char *name_in(char *block, size_t offset, const char *word, int number)
{
	sprintf(block + offset, "%s %d", word, number);
	return block + offset;
}

static void fill(int i)
{
	size_t offset = offsetof(struct member, name);
	long *header;

	for (int kind = 0; kind < KINDS; kind++) {
		struct member *member = make(offset + 20, "struct member");

		member->kind = (char)kind;
		if (kind)
			member->value.text = name_in(make(30, "?"), 0, "the value of", i);
		else
			member->value.number = i;
		all.members[kind][i] = name_in((char *)member, offset, "the name of", i);
	}
	all.either[i] = name_in(make(offsetof(struct left, name) + 20, "?"),
				offsetof(struct left, name), "one of two is", i);
	header = make(sizeof(struct label) + 30, "?");
	header[0] = 30;
	header[1] = i;
	all.texts[i] = name_in((char *)header, sizeof(struct label), "an allocator's text", i);
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	for (int i = 0; i < COUNT; i++)
		fill(i);
	all.label = make(sizeof(struct label) + 8, "struct label");
	all.label->length = 3;
	strcpy(all.label->text, "one");
	all.left = make(sizeof(struct left), "struct left");
	all.right = make(sizeof(struct right), "struct right");
	puts("ready");
	for (;;)
		pause();
}
