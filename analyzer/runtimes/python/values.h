/* Short values of objects of CPython, 3.6 to 3.14: the text of a string, the digits of an int. */
#pragma once

#include "analyzer/runtimes/python/layouts.h"
#include "analyzer/runtimes/python/types.h"

/* True if the object's type has the flag, TYPE_STRING or another. */
bool python_has_flag(struct view *view, uint64_t object, uint64_t flag);

/*
 * Copy a string as UTF-8, with "..." behind what does not fit into size bytes, which are more than
 * 8; head is one of the above. False: none is there, or it is of the kind before 3.3.
 */
bool python_read_text(struct view *view, unsigned int head, uint64_t object, char *ret,
		      size_t size);

/* Find the characters of a string, and whether the interpreter keeps one alone of that text. */
struct python_text {
	uint64_t start, length;
	unsigned int width; /* bytes of each */
	bool is_interned;
};

bool python_find_text(struct view *view, unsigned int head, uint64_t object,
		      struct python_text *ret);

/* Describe the value of an object of that class, in short; false: only its class is known. */
bool python_tell_value(struct view *view, unsigned int head, uint64_t object,
		       const char *class_name, char *ret, size_t size);
