/*
 * Text on its way to a file, or kept in memory when there is none.
 *
 * What formats write goes through one buffer of their own: a list of ten million rows is a few
 * hundred million bytes, and stdio costs several times what it takes to make them. Failures to
 * write are left to report_close().
 */
#pragma once

#include "analyzer/base/text.h"

#include <string.h>

/* All zeros, it keeps its text in memory. */
struct writer {
	FILE *out; /* borrowed; NULL: all of it stays in the buffer */
	char *buffer;
	size_t used, capacity;
	uint64_t flushed; /* bytes handed to the file */
	bool failed;	  /* memory was short, and text is missing */
};

enum { WRITER_CAPACITY = 1 << 16 };

struct error *writer_init(struct writer *writer, FILE *out);
void writer_deinit(struct writer *writer);

/* Make room for size bytes, less than WRITER_CAPACITY. */
bool writer_make_room(struct writer *writer, size_t size);

/* Hand to the file what is in the buffer. */
void writer_flush(struct writer *writer);

static inline bool writer_reserve(struct writer *writer, size_t size)
{
	if (writer->capacity - writer->used >= size)
		return true;
	return writer_make_room(writer, size);
}

static inline void writer_put(struct writer *writer, char character)
{
	if (writer_reserve(writer, 1))
		writer->buffer[writer->used++] = character;
}

static inline void writer_hexadecimal(struct writer *writer, uint64_t number)
{
	if (writer_reserve(writer, NUMBER_SIZE))
		writer->used += format_hexadecimal(number, writer->buffer + writer->used);
}

static inline void writer_decimal(struct writer *writer, uint64_t number)
{
	if (writer_reserve(writer, NUMBER_SIZE))
		writer->used += format_decimal(number, writer->buffer + writer->used);
}

static inline void writer_grouped(struct writer *writer, uint64_t number)
{
	if (writer_reserve(writer, NUMBER_SIZE))
		writer->used += format_grouped(number, writer->buffer + writer->used);
}

void writer_bytes(struct writer *writer, const char *bytes, size_t size);
void writer_pad(struct writer *writer, size_t blanks);

/* Text of our own, as it is: the length of a literal is known to the compiler. */
static inline void writer_text(struct writer *writer, const char *text)
{
	writer_bytes(writer, text, strlen(text));
}

/* Format text, and write it by write_text. */
void writer_format(struct writer *writer,
		   void (*write_text)(struct writer *writer, const char *text), const char *format,
		   ...) __attribute__((format(printf, 3, 4)));

/* Append what the other has in memory, and release it. */
void writer_move(struct writer *writer, struct writer *other);

/* Text of the dump, made harmless. */
void writer_escaped(struct writer *writer, const char *text);
