/*
 * Memory in which an object of an interpreter keeps its contents: the items of a list, the text of
 * a string. One of the object's first words is its address; others say how much of it is used.
 *
 *	object | ... | length, capacity, items, in any order |
 *	items                                    | item | item | spare |
 */
#pragma once

#include "analyzer/classify/classifier.h"

enum { MOST_OBJECT_WORDS = 8 };

struct item_contents {
	uint64_t asked;		       /* bytes that the object allocated */
	uint64_t live_start, live_end; /* offsets of what is used of them */
	uint64_t length, capacity;     /* in units */
};

struct item_layout {
	unsigned int words; /* of the object, to be read */
	unsigned int items; /* which of them is the address */
	/* True if an object with these words keeps its contents in range; sets how much. */
	bool (*read)(struct reader *reader, struct memory_range range, const uint64_t *words,
		     struct item_contents *ret);
	const char *unit, *dead; /* as in struct pattern_facts; no dead: there is no capacity */
};

/* Contents of words: a read() calls it, and checks the object's type. */
bool object_items_fit(struct reader *reader, struct memory_range range, uint64_t length,
		      uint64_t capacity, struct item_contents *ret);

/* The functions of a classifier of contents so laid out. */
void object_items_match(const struct item_layout *layout, struct reader *reader,
			const struct reference *reference);
void object_items_tell(const struct item_layout *layout, struct reader *reader,
		       struct memory_range range, struct pattern_facts *facts);
