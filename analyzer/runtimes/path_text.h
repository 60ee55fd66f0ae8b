/*
 * The text of a path, cut off where there is no more room.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

struct path_text {
	char *text;
	size_t size, used;
};

/* snprintf() was asked to write length bytes behind what was used. */
static inline void path_text_advance(struct path_text *path, int length)
{
	if (length > 0)
		path->used += (size_t)length;
	if (path->used >= path->size)
		path->used = path->size - 1;
}

/* A macro, as clang-tidy 14 wrongly finds va_list uninitialized where it is given several files. */
#define path_text_add(path, ...)                                                                   \
	path_text_advance(path, snprintf((path)->text + (path)->used, (path)->size - (path)->used, \
					 __VA_ARGS__))
