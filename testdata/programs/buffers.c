/*
 * Buffers whose memory held other things before: old pointers stand behind the text. For each
 * allocation a line "ADDRESS TYPE", with "?" for what only looks like a buffer.
 */
#include "truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 20, ROOM = 120 };

/* As that of lighttpd: the zero behind the text is used, too. */
struct buffer {
	char *text;
	unsigned int used, size;
};

/* Received bytes, text or not. */
struct input {
	size_t room, used;
	unsigned char *bytes;
};

/* The number counts something else. */
struct record {
	char *memory;
	long number;
};

/* Memory that structures are taken from. */
struct arena {
	char *memory;
	size_t used, size;
};

static struct buffer *volatile buffers[COUNT];
static struct input *volatile inputs[COUNT];
static struct record *volatile records[COUNT];
static struct arena *volatile arenas[COUNT];

static void *make(size_t size, const char *type)
{
	void *block = calloc(1, size);

	if (!block)
		abort();
	printf("%lx %s\n", (unsigned long)block, type);
	return block;
}

/* A block full of pointers into the heap. */
static void *make_used(const void *old, const char *type)
{
	const void **words = make(ROOM, type);

	for (size_t i = 0; i < ROOM / sizeof(*words); i++)
		words[i] = old;
	return words;
}

OUT_OF_LINE static void fill(unsigned int i)
{
	struct buffer *buffer = buffers[i] = make(sizeof(*buffer), "struct buffer");
	struct input *input = inputs[i] = make(sizeof(*input), "struct input");
	struct record *record = records[i] = make(sizeof(*record), "struct record");
	struct arena *arena = arenas[i] = make(sizeof(*arena), "struct arena");

	buffer->text = make_used(buffer, "char[]");
	buffer->used = (unsigned int)sprintf(buffer->text, "text/x-kind%u", i) + 1;
	buffer->size = ROOM;
	input->bytes = make_used(buffer, "unsigned char[]");
	memset(input->bytes, 0x80 + (int)i, input->used = 24);
	input->room = ROOM;
	record->memory = make_used(buffer, "?");
	snprintf(record->memory, ROOM, "abc");
	record->number = 40 + i;
	arena->memory = make_used(buffer, "?");
	arena->used = 80;
	arena->size = ROOM;
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	for (unsigned int i = 0; i < COUNT; i++)
		fill(i);
	puts("ready");
	for (;;)
		pause();
}
