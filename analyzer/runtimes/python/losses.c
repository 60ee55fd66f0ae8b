/*
 * Known leaks of CPython at its end. From 3.12 on, interned texts are immortal: their table is
 * freed, they are not (Objects/unicodeobject.c, _PyUnicode_ClearInterned()).
 */
#include "analyzer/image/image.h"
#include "analyzer/runtimes/python/objects.h"
#include "analyzer/runtimes/python/space.h"

#include <string.h>

enum { WORD = 8, NAME = 24, FLAGS = 168 }; /* of a type */

static const uint64_t TEXT = 1 << 28;

/* The end of the interpreter takes TYPE_READY from the types of its own. */
static bool is_ended_text(const struct image *image, uint64_t type)
{
	uint64_t flags, name;
	char text[sizeof("str")];

	return type % WORD == 0 && image_read_u64(image, type + FLAGS, &flags) && (flags & TEXT) &&
	       !(flags & TYPE_READY) && image_read_u64(image, type + NAME, &name) &&
	       image_read(image, name, text, sizeof(text)) &&
	       memcmp(text, "str", sizeof(text)) == 0;
}

const char *python_known_leak(struct object_space *space, allocation_id id)
{
	const struct python *python = (const struct python *)space;
	const struct image *image = python->space.image;
	uint64_t start = allocation_start(python->space.index, id), count, type;

	return image_read_u64(image, start, &count) && (count & PYTHON_IMMORTAL) &&
			       image_read_u64(image, start + WORD, &type) &&
			       is_ended_text(image, type)
		       ? "interned texts, which its end does not free"
		       : NULL;
}
