/*
 * Reads objects of CPython: numbers, texts, and how many items there are. Include/cpython:
 * setobject.h, bytearrayobject.h, and those that values.c names.
 */
#include "analyzer/runtimes/object_values.h"
#include "analyzer/runtimes/python/objects.h"
#include "analyzer/runtimes/python/space.h"
#include "analyzer/runtimes/python/values.h"

#include <errno.h>
#include <stdlib.h>

enum {
	LENGTH = 16,	 /* of what has items, and of a string; the value of a float */
	SET_USED = 24,	 /* elements of a set */
	BYTES = 32,	 /* of bytes */
	ARRAY_TEXT = 40, /* of a bytearray: the address of what it has */
};

static const uint64_t INT = 1 << 24, BYTES_FLAG = 1 << 27;

static void read_length(struct view *view, uint64_t place, struct object_value *ret)
{
	uint64_t length;

	if (view_word(view, place, &length))
		object_value_set_length(ret, length);
}

static void read_int(struct view *view, unsigned int head, uint64_t object,
		     struct object_value *ret)
{
	long long number;
	char *end;

	if (!python_tell_value(view, head, object, ret->class_name, ret->text, sizeof(ret->text)))
		return;
	ret->kind = OBJECT_IS_TEXT;
	errno = 0;
	number = strtoll(ret->text, &end, 10);
	if (!errno && end != ret->text && !*end)
		object_value_set_integer(ret, number);
}

static void read_bytes(struct view *view, uint64_t object, uint64_t text, struct object_value *ret)
{
	uint64_t length;

	if (view_word(view, object + LENGTH, &length))
		object_value_read_text(ret, view, text, length);
}

static void read_array(struct view *view, uint64_t object, struct object_value *ret)
{
	uint64_t text;

	if (view_word(view, object + ARRAY_TEXT, &text))
		read_bytes(view, object, text, ret);
}

static void read_by_name(struct view *view, uint64_t object, struct object_value *ret)
{
	static const struct {
		const char *name;
		uint64_t length;
	} containers[] = {
		{ "set", SET_USED },
		{ "frozenset", SET_USED },
		{ "collections.deque", LENGTH },
	};
	double real;

	if (strcmp(ret->class_name, "float") == 0 &&
	    view_read(view, object + LENGTH, &real, sizeof(real)))
		object_value_set_real(ret, real);
	if (strcmp(ret->class_name, "bytearray") == 0)
		read_array(view, object, ret);
	for (size_t i = 0; i < COUNT_OF(containers); i++)
		if (strcmp(ret->class_name, containers[i].name) == 0)
			read_length(view, object + containers[i].length, ret);
}

/* Classes that are derived from containers have their items, too. */
static bool has_items(struct view *view, uint64_t object)
{
	static const uint64_t flags[] = { 1 << 25, 1 << 26, 1 << 29 }; /* list, tuple, dict */

	for (size_t i = 0; i < COUNT_OF(flags); i++)
		if (python_has_flag(view, object, flags[i]))
			return true;
	return false;
}

bool python_read_value(struct object_space *space, struct view *view,
		       const struct object_link *link, struct object_value *ret)
{
	struct python *python = (struct python *)space;
	uint64_t object = link->target;

	ret->class_name = python_class_at(python, view, object);
	if (!ret->class_name)
		return false;
	if (python_has_flag(view, object, TYPE_STRING)) {
		read_length(view, object + LENGTH, ret);
		if (python_read_text(view, python->string_head, object, ret->text,
				     sizeof(ret->text)))
			ret->kind = OBJECT_IS_TEXT;
	} else if (python_has_flag(view, object, INT)) {
		read_int(view, python->string_head, object, ret);
	} else if (python_has_flag(view, object, BYTES_FLAG)) {
		read_bytes(view, object, object + BYTES, ret);
	} else if (has_items(view, object)) {
		read_length(view, object + LENGTH, ret);
	} else {
		read_by_name(view, object, ret);
	}
	return true;
}
