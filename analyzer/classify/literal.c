#include "analyzer/classify/literal.h"

#include <string.h>

static bool is_plain(uint8_t byte)
{
	return (byte >= ' ' && byte < 0x7f) || (byte >= '\t' && byte <= '\r') || byte == 0x1b;
}

size_t literal_character(const uint8_t *bytes, size_t size)
{
	size_t length = *bytes < 0x80	? is_plain(*bytes)
			: *bytes < 0xc2 ? 0
			: *bytes < 0xe0 ? 2
			: *bytes < 0xf0 ? 3
			: *bytes < 0xf5 ? 4
					: 0;

	for (size_t i = 1; i < length && i < size; i++)
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
	return length;
}

const char *literal_find(const struct image *image, uint64_t address, size_t *ret_length)
{
	/* Shorter ones are numbers as well. */
	enum { SHORTEST = 3, LONGEST = 1 << 12 };
	uint64_t available;
	const uint8_t *bytes = image_bytes(image, address, &available);
	size_t length = 0, step = 1;
	uint8_t before;

	if (!bytes || (image_read(image, address - 1, &before, 1) && before != 0))
		return NULL;
	available = MIN(available, LONGEST);
	for (; length < available && step; length += step)
		step = literal_character(bytes + length, available - length);
	if (length < SHORTEST || length >= available || bytes[length] != 0)
		return NULL;
	*ret_length = length;
	return (const char *)bytes;
}

bool literal_overwrote(uint64_t word)
{
	enum { LONGEST = 3 };
	uint8_t bytes[sizeof(word)];
	size_t length = 0;

	memcpy(bytes, &word, sizeof(word));
	while (length <= LONGEST && is_plain(bytes[length]))
		length++;
	return length > 0 && length <= LONGEST && bytes[length] == 0;
}
