/*
 * Memory that an object of an interpreter has for its items, a word each: a list of Python, an
 * Array of Ruby.
 *
 *	object | ... | length, capacity, items, in any order |
 *	items                                    | item | item | spare |
 */
#ifndef ANALYZER_RUNTIMES_OBJECT_ITEMS_H
#define ANALYZER_RUNTIMES_OBJECT_ITEMS_H

#include "analyzer/classify/classifier.h"

enum { OBJECT_ITEMS_WORDS = 5 };

struct object_items {
	/* Which of the object's first words these are. */
	unsigned int length, capacity, items;
	/* Whether an object with these first words is of the right type. */
	bool (*is_owner)(struct reader *reader, const uint64_t *words);
	const char *unit, *dead; /* as in struct pattern_facts */
};

/* The functions of a classifier, of items so laid out. */
void object_items_match(const struct object_items *layout, struct reader *reader,
			const struct reference *reference);
bool object_items_measure(const struct object_items *layout, struct reader *reader,
			  struct memory_range range, uint64_t owner, struct pattern_extent *ret);
void object_items_tell(const struct object_items *layout, struct reader *reader,
		       struct memory_range range, struct pattern_facts *facts);

#endif
