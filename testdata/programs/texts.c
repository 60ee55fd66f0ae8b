/*
 * Allocations that hold text, and others that look much like it: for each a line "text ADDRESS",
 * "wide ADDRESS" if its characters are wide, or "other ADDRESS". "letters ADDRESS" has numbers that
 * nobody can tell from wide text.
 */
#include "truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uchar.h>
#include <wchar.h>

enum { COUNT = 200 };

static void *volatile kept[COUNT * 24];
static size_t kept_count;

static void *keep(const char *word, void *block)
{
	printf("%s %lx\n", word, (unsigned long)block);
	kept[kept_count++] = block;
	return block;
}

static void keep_copy(const char *text)
{
	keep("text", strdup(text));
}

/* In a buffer that is larger, and zero behind it. */
static void keep_in_buffer(const char *text, size_t size)
{
	strcpy(keep("text", calloc(1, size)), text);
}

static OUT_OF_LINE void make_texts(void)
{
	static char lines[3000];
	char text[64];

	for (int i = 0; i < COUNT; i++) {
		snprintf(text, sizeof(text), "value number %d", i);
		keep_copy(text);
		snprintf(text, sizeof(text), "elem %d", i);
		keep_copy(text);
	}
	keep_copy("\xc3\x84rger in K\xc3\xb6ln \xe2\x82\xac 5");
	keep_copy("first line\n\tsecond line\r\n");
	keep_copy("abcdeU");
	keep_in_buffer("a name in a buffer", 256);
	for (size_t i = 0; i + 1 < sizeof(lines); i++)
		lines[i] = i % 60 == 59 ? '\n' : (char)('a' + i % 26);
	keep_copy(lines);
	keep_in_buffer("/usr/share/zoneinfo/Europe/Berlin", 8192);
}

/* Freed blocks leave text in blocks that are reused for numbers and pointers. */
static OUT_OF_LINE void make_stale(void)
{
	struct record {
		struct record *next;
		long count;
		char rest[176];
	} * records[40];

	for (int i = 0; i < 40; i++) {
		records[i] = malloc(sizeof(struct record));
		memset(records[i], 'x', sizeof(struct record) - 1);
	}
	for (int i = 0; i < 40; i++)
		free(records[i]);
	for (int i = 0; i < 40; i++) {
		struct record *record = keep("other", malloc(sizeof(struct record)));

		record->next = i % 2 ? kept[0] : NULL;
		record->count = i;
	}
}

/* A name at the start of a structure makes no text of it. */
static OUT_OF_LINE void make_structures(void)
{
	struct named {
		char name[16];
		void *value;
	};
	struct device {
		char name[24];
		double speed;
		unsigned int flags[8];
	};
	struct letter {
		int letter, count;
		long place;
	};

	for (int i = 0; i < COUNT; i++) {
		struct named *named = keep("other", calloc(1, sizeof(*named)));
		struct device *device = keep("other", calloc(1, sizeof(*device)));
		struct letter *letter = keep("other", calloc(1, sizeof(*letter)));

		snprintf(named->name, sizeof(named->name), "entry %d", i);
		named->value = kept[0];
		snprintf(device->name, sizeof(device->name), "device %d", i);
		device->speed = 1.5 * i + 1;
		device->flags[3] = 1u << i % 32;
		letter->letter = 'A' + i % 26;
		letter->place = i;
	}
}

/* Links back stand before links on: each is held by the one behind it. */
static OUT_OF_LINE void make_chain(void)
{
	struct link {
		struct link *before, *behind;
		long numbers[40];
	} *last = NULL;

	for (int i = 0; i < 30; i++) {
		struct link *link = calloc(1, sizeof(*link));

		printf("other %lx\n", (unsigned long)link);
		link->before = last;
		if (last)
			last->behind = link;
		else
			kept[kept_count++] = link;
		link->numbers[7] = i;
		last = link;
	}
}

static void keep_wide(const wchar_t *text)
{
	keep("wide", wcsdup(text));
}

/* Keep a text in UTF-16. */
static void keep_narrow(const char16_t *text, size_t size, size_t room)
{
	memcpy(keep("wide", calloc(1, size + room)), text, size);
}

static OUT_OF_LINE void make_wide(void)
{
	struct counters {
		int counts[12];
		void *next;
	};
	wchar_t text[64];

	for (int i = 0; i < COUNT; i++) {
		int *points = keep("other", calloc(20, sizeof(*points)));
		int16_t *samples = keep("other", calloc(40, sizeof(*samples)));
		struct counters *counters = keep("other", calloc(1, sizeof(*counters)));

		swprintf(text, sizeof(text) / sizeof(*text), L"line %d of the history", i);
		keep_wide(text);
		keep_narrow(u"a name of UTF-16", sizeof(u"a name of UTF-16"), (size_t)(i % 40));
		for (int j = 0; j < 20; j++)
			points[j] = 20 + (i + j) % 40;
		for (int j = 0; j < 24; j++)
			samples[j] = (int16_t)(100 * (j % 7) - 20 * i);
		for (int j = 0; j < 8; j++)
			counters->counts[j] = 'a' + (i * j) % 26;
		counters->next = kept[0];
	}
	keep_wide(L"\u00c4rger in K\u00f6ln, Stra\u00dfe 5");
}

static OUT_OF_LINE void make_numbers(void)
{
	uint32_t state = 1;

	for (int i = 0; i < COUNT; i++) {
		uint32_t *characters = keep("letters", calloc(12, sizeof(*characters)));
		double *numbers = keep("other", calloc(4, sizeof(*numbers)));
		unsigned char *bytes = keep("other", calloc(1, 40));
		long *number = keep("other", calloc(1, 24));

		for (int j = 0; j < 12; j++)
			characters[j] = (uint32_t)('a' + (i + j) % 26);
		for (int j = 0; j < 4; j++)
			numbers[j] = i / 7.0 + j;
		for (int j = 0; j < 40; j++)
			bytes[j] = (unsigned char)truth_random(&state, 256);
		bytes[3] = 1;
		number[0] = 8224 + 37 * i;
		memcpy(keep("other", calloc(1, 64)), "GIF89a\x01\x00\x10\x00\xf7\x01", 12);
	}
}

int main(void)
{
	truth_open();
	make_stale();
	make_texts();
	make_structures();
	make_chain();
	make_numbers();
	make_wide();
	fflush(stdout);
	truth_ready();
}
