#include "analyzer/image/held.h"

#include <string.h>

enum { HEAD = sizeof(uint64_t) };

size_t image_held_count(const struct image *image)
{
	struct own_note note = image_note(image, NOTE_HELD);

	return note.size < HEAD ? 0 : (note.size - HEAD) / sizeof(struct held_value);
}

struct held_value image_held(const struct image *image, size_t number)
{
	struct own_note note = image_note(image, NOTE_HELD);
	struct held_value value;

	memcpy(&value, note.bytes + HEAD + number * sizeof(value), sizeof(value));
	return value;
}

bool image_held_sought(const struct image *image, enum held_kind kind)
{
	struct own_note note = image_note(image, NOTE_HELD);
	uint64_t sought = 0;

	if (note.size >= HEAD)
		memcpy(&sought, note.bytes, HEAD);
	return sought >> kind & 1;
}
