#include "cli/views/contents_text.h"

#include "analyzer/account/contents.h"

#include <inttypes.h>
#include <string.h>

enum {
	SHOWN_CHARACTERS = 28,
	SHOWN_BYTES = 8,
	SEARCHED = 128,
	LONGEST_CHARACTER = 4,
};

/* Cut where a character begins. */
static int cut_text(const char *text, uint64_t length)
{
	int end = SHOWN_CHARACTERS;

	if (length <= SHOWN_CHARACTERS)
		return (int)length;
	while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
		end--;
	return end;
}

static void write_bytes(const uint8_t *bytes, uint64_t size, char ret[CONTENTS_TEXT_SIZE])
{
	uint64_t shown = size < SHOWN_BYTES ? size : SHOWN_BYTES;
	char *at = ret;

	for (uint64_t i = 0; i < shown; i++)
		at += sprintf(at, i ? " %02x" : "%02x", bytes[i]);
	if (shown < size)
		memcpy(at, " ...", sizeof(" ..."));
}

/*
 * Where a text begins in the size bytes, behind which a 0 is; its length goes to ret_length. One
 * that is not at their start has to be longer.
 */
static uint64_t find_text(const uint8_t *bytes, uint64_t size, uint64_t *ret_length)
{
	enum { LEAST_TEXT = 6, ALIGNMENT = 4 };

	for (uint64_t at = 0; at < size; at += ALIGNMENT) {
		uint64_t length = contents_text(bytes + at, size + 1 - at);

		if (length < (at ? LEAST_TEXT : 1))
			continue;
		*ret_length = length;
		return at;
	}
	return size;
}

const char *contents_text_write(const struct image *image, uint64_t address, uint64_t size,
				char ret[CONTENTS_TEXT_SIZE])
{
	char bytes[SEARCHED + 1];
	uint64_t known = size < SEARCHED ? size : SEARCHED;
	uint64_t length, at;

	if (known == 0 || !image_read(image, address, bytes, known))
		return NULL;
	/* No character is cut. */
	while (size > known && known > SEARCHED - LONGEST_CHARACTER && (bytes[known - 1] & 0x80))
		known--;
	bytes[known] = '\0';
	at = find_text((const uint8_t *)bytes, known, &length);
	if (at >= known) {
		write_bytes((const uint8_t *)bytes, size, ret);
		return ret;
	}
	snprintf(ret, CONTENTS_TEXT_SIZE, "%s\"%.*s\"%s", at ? "... " : "",
		 cut_text(bytes + at, length), bytes + at, length > SHOWN_CHARACTERS ? "..." : "");
	return ret;
}
