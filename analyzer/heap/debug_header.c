#include "analyzer/heap/debug_header.h"

#include <inttypes.h>
#include <string.h>

bool debug_header_read(const struct image *image, uint64_t address, struct debug_header *ret)
{
	static const uint64_t MARK = 0xFEDCEDCBFEDCEDCB;
	uint64_t words[DEBUG_HEADER_SIZE / sizeof(uint64_t)];

	if (!image_read(image, address, words, sizeof(words)) ||
	    (words[3] ^ MARK) != address + DEBUG_HEADER_SIZE)
		return false;
	*ret = (struct debug_header){ words[0], (uint32_t)words[1], words[2] };
	return true;
}

char *debug_header_text(const struct image *image, const struct debug_header *header)
{
	enum { LONGEST_NAME = 4096 };
	uint64_t size;
	const uint8_t *name = image_bytes(image, header->file, &size);
	char *text;

	if (!name)
		return NULL;
	if (size > LONGEST_NAME)
		size = LONGEST_NAME;
	size = strnlen((const char *)name, size);
	if (size == 0 || asprintf(&text, "%.*s:%" PRIu32, (int)size, name, header->line) < 0)
		return NULL;
	return text;
}
