#include "analyzer/heap/debug_header.h"

#include "analyzer/heap/allocator.h"

#include <inttypes.h>
#include <string.h>

bool debug_header_read(const struct image *image, uint64_t address, struct debug_header *ret)
{
	for (size_t i = 0; allocators[i]; i++)
		if (allocators[i]->read_debug_header &&
		    allocators[i]->read_debug_header(image, address, ret))
			return true;
	return false;
}

char *debug_header_text(const struct image *image, const struct debug_header *header)
{
	enum { LONGEST_NAME = 4096 };
	uint64_t size;
	const uint8_t *name = image_bytes(image, header->file, &size);
	char *text;

	if (!name)
		return NULL;
	size = MIN(size, LONGEST_NAME);
	size = strnlen((const char *)name, size);
	if (size == 0 || asprintf(&text, "%.*s:%" PRIu32, (int)size, name, header->line) < 0)
		return NULL;
	return text;
}
