/*
 * Values of numbers, texts and containers of a language, for queries. Runtimes read them; all of it
 * is contents of memory, but for the class and the length.
 */
#pragma once

#include "analyzer/runtimes/object_links.h"

enum { OBJECT_MOST_TEXT = 4096 };

enum object_value_kind { OBJECT_SAYS_NOTHING, OBJECT_IS_INTEGER, OBJECT_IS_REAL, OBJECT_IS_TEXT };

struct object_value {
	enum object_value_kind kind;
	union {
		int64_t integer;
		double real;
	};
	bool has_length;
	uint64_t length;	/* characters or bytes of a text, items of a container */
	const char *class_name; /* lives as long as the space; NULL: not known */
	/* A text; only the beginning if it is longer. Untrusted. */
	char text[OBJECT_MOST_TEXT];
};

static inline void object_value_set_integer(struct object_value *value, int64_t integer)
{
	value->kind = OBJECT_IS_INTEGER;
	value->integer = integer;
}

static inline void object_value_set_real(struct object_value *value, double real)
{
	value->kind = OBJECT_IS_REAL;
	value->real = real;
}

static inline void object_value_set_length(struct object_value *value, uint64_t length)
{
	value->has_length = true;
	value->length = length;
}

/* Read a text of that many bytes, as far as there is room. */
static inline void object_value_read_text(struct object_value *value, struct view *view,
					  uint64_t address, uint64_t length)
{
	size_t size = length < OBJECT_MOST_TEXT ? (size_t)length : OBJECT_MOST_TEXT - 1;

	object_value_set_length(value, length);
	if (size && !view_read(view, address, value->text, size))
		return;
	value->text[size] = '\0';
	value->kind = OBJECT_IS_TEXT;
}

/*
 * Read what the target of a link says, or with a target alone an object. False: no value of the
 * language is there.
 */
static inline bool object_value_read(struct object_space *space, struct view *view,
				     const struct object_link *link, struct object_value *ret)
{
	const struct runtime_links *links = space->runtime->links;

	ret->kind = OBJECT_SAYS_NOTHING;
	ret->has_length = false;
	ret->class_name = NULL;
	return links && links->read_value && links->read_value(space, view, link, ret);
}
