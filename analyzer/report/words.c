#include "analyzer/report/words.h"

enum { WORD_SIZE = 8, WORD_WIDTH = 16, LINE_SIZE = 0x20 };

static size_t hexadecimal_width(uint64_t number)
{
	char digits[NUMBER_SIZE];

	return format_hexadecimal(number, digits);
}

/* The word that bytes begin with, or what there is of it. */
static void write_word(struct writer *writer, const uint8_t *bytes, size_t size)
{
	uint64_t word = 0;

	memcpy(&word, bytes, size < WORD_SIZE ? size : WORD_SIZE);
	writer_pad(writer, WORD_WIDTH - hexadecimal_width(word));
	writer_hexadecimal(writer, word);
}

static void write_ascii(struct writer *writer, const uint8_t *bytes, size_t size)
{
	size_t words = (size + WORD_SIZE - 1) / WORD_SIZE;

	writer_pad(writer, (LINE_SIZE / WORD_SIZE - words) * (WORD_WIDTH + 1));
	writer_pad(writer, 3);
	for (size_t i = 0; i < size; i++)
		writer_put(writer, bytes[i] < ' ' || bytes[i] > '~' ? '.' : (char)bytes[i]);
}

static void write_line(struct writer *writer, const uint8_t *bytes, size_t size,
		       const struct memory_view *view)
{
	for (size_t i = 0; i < size; i += WORD_SIZE) {
		if (i > 0)
			writer_put(writer, ' ');
		write_word(writer, bytes + i, size - i);
	}
	if (view->ascii)
		write_ascii(writer, bytes, size);
	else if (view->blank && size <= LINE_SIZE - WORD_SIZE)
		writer_put(writer, ' ');
}

/* Begin a line. Width is that of the widest label, 0 for none. */
static void begin_line(struct writer *writer, bool first, uint64_t label, size_t width)
{
	if (!first)
		writer_put(writer, '\n');
	if (!width)
		return;
	writer_pad(writer, width - hexadecimal_width(label));
	writer_hexadecimal(writer, label);
	writer_bytes(writer, ": ", 2);
}

static void write_absent(struct writer *writer, uint64_t size)
{
	static const char text[] = " bytes that are not in the dump";

	writer_bytes(writer, "0x", 2);
	writer_hexadecimal(writer, size);
	writer_bytes(writer, text, sizeof(text) - 1);
}

void words_write(struct writer *writer, const struct memory_view *view)
{
	uint64_t done = 0, shift = view->address - view->origin;
	size_t width =
		view->size > LINE_SIZE || shift ? hexadecimal_width(shift + view->size - 1) : 0;

	while (done < view->size && !(writer->out && ferror(writer->out))) {
		uint64_t run = 0;
		const uint8_t *bytes = memory_view_run(view, done, &run);

		if (run == 0)
			return;
		if (!bytes) {
			begin_line(writer, done == 0, shift + done, width);
			write_absent(writer, run);
			done += run;
			continue;
		}
		for (uint64_t end = done + run, size; done < end; done += size, bytes += size) {
			/* Behind a gap, lines get in step with offsets again.
			 */
			size = LINE_SIZE - done % LINE_SIZE;
			if (size > end - done)
				size = end - done;
			begin_line(writer, done == 0, shift + done, width);
			write_line(writer, bytes, size, view);
		}
	}
}
