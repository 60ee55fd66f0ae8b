/*
 * A heap drawn as text. "root>a a>bc c>D" has four allocations, which are a, b, c and d in order of
 * address: a root refers to a, a to b and then to c, and c to d, which is free.
 *
 * Each letter is an allocation, and a capital one is free. All before a '>' refer to all behind it,
 * and "a>b>c" is short for "a>b b>c". '-' stands for a word that refers to nothing.
 */
#pragma once

#include "analyzer/heap/index.h"

#include "tests/assertions.h"

#include <ctype.h>
#include <string.h>

enum { MOST_DRAWN = 26, MOST_DRAWN_EDGES = 64 };

struct edge {
	allocation_id from, to;
};

struct drawing {
	size_t count; /* of allocations: up to the last letter */
	bool is_free[MOST_DRAWN];
	struct edge edges[MOST_DRAWN_EDGES];  /* as drawn */
	unsigned int words[MOST_DRAWN_EDGES]; /* of the source, where each edge stands */
	size_t edge_count;
	uint64_t roots; /* which allocations roots refer to, as bits */
};

static inline allocation_id drawn_id(char letter)
{
	assert_true(isalpha((unsigned char)letter));
	return (allocation_id)(tolower((unsigned char)letter) - 'a');
}

static inline void drawing_join(struct drawing *drawing, unsigned int *words, const char *sources,
				const char *targets)
{
	for (; isalpha((unsigned char)*sources); sources++)
		for (const char *target = targets; *target && !strchr("> ", *target); target++) {
			unsigned int word = words[drawn_id(*sources)]++;

			if (*target == '-')
				continue;
			assert_true(drawing->edge_count < MOST_DRAWN_EDGES);
			drawing->words[drawing->edge_count] = word;
			drawing->edges[drawing->edge_count++] =
				(struct edge){ drawn_id(*sources), drawn_id(*target) };
		}
}

static inline struct drawing draw(const char *text)
{
	static const char ROOT[] = "root>";
	struct drawing drawing = { 0 };
	unsigned int words[MOST_DRAWN] = { 0 };
	const char *group = text;
	bool in_root = false;

	for (const char *at = text; *at; at++) {
		bool begins = at == text || strchr("> ", at[-1]);

		if (begins && strncmp(at, ROOT, sizeof(ROOT) - 1) == 0) {
			at += sizeof(ROOT) - 2;
			in_root = true;
		} else if (*at == ' ') {
			in_root = false;
		} else if (*at == '>') {
			drawing_join(&drawing, words, group, at + 1);
			in_root = false;
		} else if (*at != '-') {
			allocation_id id = drawn_id(*at);

			if (begins)
				group = at;
			if (isupper((unsigned char)*at))
				drawing.is_free[id] = true;
			if (in_root)
				drawing.roots |= UINT64_C(1) << id;
			if (drawing.count <= id)
				drawing.count = id + 1;
		}
	}
	return drawing;
}
