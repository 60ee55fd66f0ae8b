#include "cli/contents_text.h"

#include "analyzer/query/contents.h"

#include <inttypes.h>
#include <string.h>

enum { SHOWN_CHARACTERS = 28, SHOWN_BYTES = 8 };

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

static void write_bytes(const uint8_t *bytes, uint64_t size,
			char ret[CONTENTS_TEXT_SIZE])
{
	uint64_t shown = size < SHOWN_BYTES ? size : SHOWN_BYTES;
	char *at = ret;

	for (uint64_t i = 0; i < shown; i++)
		at += sprintf(at, i ? " %02x" : "%02x", bytes[i]);
	if (shown < size)
		strcpy(at, " ...");
}

const char *contents_text_write(const struct image *image, uint64_t address,
				uint64_t size, char ret[CONTENTS_TEXT_SIZE])
{
	char bytes[SHOWN_CHARACTERS + 8] = { 0 };
	uint64_t known = size < sizeof(bytes) ? size : sizeof(bytes);
	uint64_t length;

	if (known == 0 || !image_read(image, address, bytes, known))
		return NULL;
	/* An end, as if it were there: the rest is not shown. */
	if (known == sizeof(bytes))
		bytes[SHOWN_CHARACTERS + 7] = '\0';
	length = contents_text((const uint8_t *)bytes, known);
	if (length == 0 && known < sizeof(bytes) && !memchr(bytes, 0, known))
		length = contents_text((const uint8_t *)bytes, known + 1);
	if (length == 0) {
		write_bytes((const uint8_t *)bytes, size, ret);
		return ret;
	}
	snprintf(ret, CONTENTS_TEXT_SIZE, "\"%.*s\"%s", cut_text(bytes, length),
		 bytes, length > SHOWN_CHARACTERS ? "..." : "");
	return ret;
}
