/*
 * Strings of a program, as they stand in its read-only data.
 */
#pragma once

#include "analyzer/image/image.h"

/* How long the character of UTF-8 is that begins there; 0: there is none. */
size_t literal_character(const uint8_t *bytes, size_t size);

/*
 * The text that begins at address, behind a 0 and up to the next one; NULL: there is none.
 * *ret_length is that of the text, which is not empty.
 */
const char *literal_find(const struct image *image, uint64_t address, size_t *ret_length);

/*
 * True if the first bytes of the word are a text of one to three characters and its end, as a short
 * string leaves in an older pointer.
 */
bool literal_overwrote(uint64_t word);
