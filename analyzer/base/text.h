/*
 * Text: what a user typed, and what a dump says.
 *
 * Numbers are parsed in full or not at all, and an error names the bad word. Addresses are
 * hexadecimal, with or without 0x. Sizes are so, too, unless a unit follows: "20" is 32 bytes,
 * "20K" is 20,480. Counts are decimal.
 *
 * Text of a dump is hostile: what is shown of it went through escape_text(), so that no control
 * character, escape sequence, invalid UTF-8 or change of writing direction reaches a terminal.
 */
#pragma once

#include "analyzer/base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Hexadecimal, with or without 0x. */
struct error *parse_address(const char *word, uint64_t *ret);
/* Decimal, perhaps with K, M or G, or hexadecimal with 0x. */
struct error *parse_size(const char *word, uint64_t *ret);
struct error *parse_count(const char *word, uint64_t *ret);

/* "90s", "30m", "12h", "7d" as nanoseconds, of 68 years at most. */
struct error *parse_time(const char *word, uint64_t *ret);

/* True if word is a hexadecimal number that fits. */
bool is_address(const char *word);

/* The longest number, with separators and its end. */
enum { NUMBER_SIZE = 32 };

/* The word, with 0x in front of bare hexadecimal digits: into buffer then. */
const char *spell_hexadecimal(const char *word, char buffer[static NUMBER_SIZE]);

/* "1.2 MB", of 1,024 KB each, into buffer, which is returned. */
const char *in_largest_unit(uint64_t bytes, char buffer[static NUMBER_SIZE]);

/* "1,032 (0x408)" into buffer, which is returned. */
enum { SIZE_SIZE = 2 * NUMBER_SIZE };
const char *format_size(uint64_t size, char buffer[static SIZE_SIZE]);

/* "1234567" as "1,234,567" into buffer; returns its length. */
size_t format_grouped(uint64_t number, char buffer[static NUMBER_SIZE]);

/* Like format_grouped(), returning buffer, to print several numbers in one call. */
static inline const char *grouped(uint64_t number, char buffer[static NUMBER_SIZE])
{
	format_grouped(number, buffer);
	return buffer;
}

/* In hexadecimal without 0x; returns its length. */
size_t format_hexadecimal(uint64_t number, char buffer[static NUMBER_SIZE]);
size_t format_decimal(uint64_t number, char buffer[static NUMBER_SIZE]);

/*
 * The known word that the mistyped one is nearest to, or else begins; NULL if none is near enough
 * to be meant. known(data, number) is the number-th word, NULL at the end. Of words equally near
 * the first is taken; letter case makes no difference.
 */
const char *nearest_word(const char *word, const char *(*known)(const void *data, size_t number),
			 const void *data);

/* "'WORD' is not WHAT", the word escaped. */
struct error *error_not(const char *word, const char *what);

/* "unknown WHAT 'WORD'", and "; did you mean 'NEAREST'?" if there is one. The word is escaped. */
struct error *error_unknown(const char *what, const char *word, const char *nearest);

/* The longest escaped piece. */
enum { ESCAPED_SIZE = 16 };

/* How many bytes at the start of text are printable characters in UTF-8, or space between such. */
size_t text_run(const char *text, size_t size);

/* How many bytes at the start of text stay what they are: most of most texts.
 */
size_t escape_not_needed(const char *text);

/*
 * Escape the next character of text, of which size bytes are there, into buffer, without an end.
 * Returns the bytes of text it took; none only if size is 0.
 */
size_t escape_character(const char *text, size_t size, char buffer[static ESCAPED_SIZE],
			size_t *ret_length);

/* The file of "dir/server.c:5", to be freed, and its line; NULL: there is none, or no memory. */
char *source_file(const char *source, uint64_t *ret_line);

/* Print to a string, to be freed. NULL if memory is short. */
char *format_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A copy of text, escaped, to be freed. NULL if memory is short. */
char *escape_text(const char *text);

/* Like escape_text(), for machines: text that is printable as a whole is copied unchanged. */
char *text_as_is(const char *text);
