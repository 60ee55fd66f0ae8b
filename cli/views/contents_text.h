/*
 * What a stretch of memory holds, in a few words: the only way in which tables show contents beside
 * other things.
 */
#ifndef CLI_VIEWS_CONTENTS_TEXT_H
#define CLI_VIEWS_CONTENTS_TEXT_H

#include "analyzer/image/image.h"

enum { CONTENTS_TEXT_SIZE = 64 };

/*
 * The first text in it, in quotes, which may be hostile; behind dots, if there is something else
 * before it. Without one, the first bytes in hexadecimal. Returns ret, which is NULL where nothing
 * is known of it.
 */
const char *contents_text_write(const struct image *image, uint64_t address, uint64_t size,
				char ret[CONTENTS_TEXT_SIZE]);

#endif
