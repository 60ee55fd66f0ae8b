#include "analyzer/report/writer.h"

struct error *writer_init(struct writer *writer, FILE *out)
{
	char *buffer = malloc(WRITER_CAPACITY);

	TRY_MEMORY(buffer);
	*writer = (struct writer){ .out = out, .buffer = buffer, .capacity = WRITER_CAPACITY };
	return NULL;
}

void writer_deinit(struct writer *writer)
{
	writer_flush(writer);
	free(writer->buffer);
	*writer = (struct writer){ 0 };
}

void writer_flush(struct writer *writer)
{
	if (!writer->out)
		return;
	fwrite_unlocked(writer->buffer, 1, writer->used, writer->out);
	writer->flushed += writer->used;
	writer->used = 0;
}

bool writer_make_room(struct writer *writer, size_t size)
{
	size_t capacity = writer->capacity ? writer->capacity * 2 : WRITER_CAPACITY;
	char *buffer;

	if (writer->out) {
		writer_flush(writer);
		return true;
	}
	buffer = realloc(writer->buffer, capacity);
	if (!buffer) {
		writer->failed = true;
		return false;
	}
	writer->buffer = buffer;
	writer->capacity = capacity;
	return true;
}

void writer_bytes(struct writer *writer, const char *bytes, size_t size)
{
	while (size) {
		size_t piece = size < WRITER_CAPACITY / 2 ? size : WRITER_CAPACITY / 2;

		if (!writer_reserve(writer, piece))
			return;
		memcpy(writer->buffer + writer->used, bytes, piece);
		writer->used += piece;
		bytes += piece;
		size -= piece;
	}
}

void writer_format(struct writer *writer,
		   void (*write_text)(struct writer *writer, const char *text), const char *format,
		   ...)
{
	_cleanup_(free) char *text = FORMATTED(format);

	if (text)
		write_text(writer, text);
	else
		writer->failed = true;
}

void writer_move(struct writer *writer, struct writer *other)
{
	writer_bytes(writer, other->buffer, other->used);
	writer->failed |= other->failed;
	writer_deinit(other);
}

void writer_pad(struct writer *writer, size_t blanks)
{
	while (blanks-- > 0)
		writer_put(writer, ' ');
}

void writer_escaped(struct writer *writer, const char *text)
{
	size_t plain = escape_not_needed(text), size, length;

	writer_bytes(writer, text, plain);
	text += plain;
	size = strlen(text);
	while (size && writer_reserve(writer, ESCAPED_SIZE)) {
		size_t taken = escape_character(text, size, writer->buffer + writer->used, &length);

		writer->used += length;
		text += taken;
		size -= taken;
	}
}
