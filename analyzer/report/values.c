#include "analyzer/report/values.h"

#include <ctype.h>

enum { WORD_SIZE = 8, LINE_SIZE = 0x20, SHORT_LINE_SIZE = 0x10 };

static size_t word_size(const struct memory_view *view)
{
	return view->word ? view->word : WORD_SIZE;
}

/* In characters: two for each byte. */
static size_t word_width(const struct memory_view *view)
{
	return 2 * word_size(view);
}

static size_t hexadecimal_width(uint64_t number)
{
	char digits[NUMBER_SIZE];

	return format_hexadecimal(number, digits);
}

/* The word that bytes begin with, or what there is of it. */
static void write_word(struct writer *writer, const uint8_t *bytes, size_t size,
		       const struct memory_view *view)
{
	uint64_t word = 0;

	memcpy(&word, bytes, size < word_size(view) ? size : word_size(view));
	writer_pad(writer, word_width(view) - hexadecimal_width(word));
	writer_hexadecimal(writer, word);
}

static void write_ascii(struct writer *writer, const uint8_t *bytes, size_t size, size_t line_size,
			const struct memory_view *view)
{
	size_t words = (size + word_size(view) - 1) / word_size(view);

	writer_pad(writer, (line_size / word_size(view) - words) * (word_width(view) + 1));
	writer_pad(writer, 3);
	for (size_t i = 0; i < size; i++)
		writer_put(writer, bytes[i] < ' ' || bytes[i] > '~' ? '.' : (char)bytes[i]);
}

static void write_line(struct writer *writer, const uint8_t *bytes, size_t size, size_t line_size,
		       const struct memory_view *view)
{
	for (size_t i = 0; i < size; i += word_size(view)) {
		if (i > 0)
			writer_put(writer, ' ');
		write_word(writer, bytes + i, size - i, view);
	}
	if (view->ascii)
		write_ascii(writer, bytes, size, line_size, view);
	else if (view->blank && size <= line_size - word_size(view))
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
	writer_text(writer, ": ");
}

static void write_absent(struct writer *writer, const struct memory_view *view, uint64_t size)
{
	if (view->is_slim) {
		writer_text(writer, report_left_out);
		return;
	}
	writer_text(writer, "0x");
	writer_hexadecimal(writer, size);
	writer_text(writer, " bytes that are not in the dump");
}

/* Half of LINE_SIZE where a whole one does not fit behind a label of that width. */
static size_t choose_line_size(const struct memory_view *view, size_t label)
{
	size_t width =
		label + (label ? 2 : 0) + LINE_SIZE / word_size(view) * (word_width(view) + 1) - 1;

	if (view->ascii)
		width += 3 + LINE_SIZE;
	return view->room && width > view->room ? SHORT_LINE_SIZE : LINE_SIZE;
}

/*
 * Contents of memory for people: 8-byte words, four to a line of 0x20 bytes.
 *
 *	 0:     55bd4cec3ca0                0     55bd5b510a40               18
 *	20:                1                0
 *
 * Where four are too wide, there are two. A line begins with its offset, or address, unless there
 *is only one. What is absent has a line of its own. The last line is left open.
 */
static void words_write(struct writer *writer, const struct memory_view *view)
{
	uint64_t done = 0, shift = view->address - view->origin;
	size_t label = hexadecimal_width(shift + view->size - 1);
	size_t line_size = choose_line_size(view, label);
	size_t width = view->size > line_size || shift ? label : 0;

	while (done < view->size && !(writer->out && ferror(writer->out))) {
		uint64_t run = 0;
		const uint8_t *bytes = memory_view_run(view, done, &run);

		if (run == 0)
			return;
		if (!bytes) {
			begin_line(writer, done == 0, shift + done, width);
			write_absent(writer, view, run);
			done += run;
			continue;
		}
		for (uint64_t end = done + run, size; done < end; done += size, bytes += size) {
			/* Behind a gap, lines get in step with offsets again.
			 */
			size = line_size - done % line_size;
			size = MIN(size, end - done);
			begin_line(writer, done == 0, shift + done, width);
			write_line(writer, bytes, size, line_size, view);
		}
	}
}

static void write_real(struct writer *writer, const char *format, double real)
{
	char buffer[NUMBER_SIZE];
	int length = snprintf(buffer, sizeof(buffer), format, real);

	if (length > 0 && (size_t)length < sizeof(buffer))
		writer_bytes(writer, buffer, (size_t)length);
}

/* "+1,234", "-1,234", "0". */
static void write_change(struct writer *writer, uint64_t change)
{
	bool negative = (int64_t)change < 0;

	if (change)
		writer_put(writer, negative ? '-' : '+');
	writer_grouped(writer, negative ? -change : change);
}

/* A value of any kind, but for text. */
static void write_number(struct writer *writer, const struct value *value)
{
	bool negative = (int64_t)value->number < 0;

	if (value->real != 0) {
		write_real(writer, "%.15g", value->real);
		return;
	}
	if (negative)
		writer_put(writer, '-');
	writer_decimal(writer, negative ? -value->number : value->number);
}

const char *value_colour(const struct column *column, const struct value *value)
{
	static const char *const kinds[] = { "class", "of class",     "identity", "kind",
					     "name",  "known as",     "pattern",  "owner",
					     "type",  "several named" };

	if (column->kind != VALUE_TEXT || !value->present)
		return NULL;
	if (strcmp(value->text, "passed") == 0)
		return "\033[32m";
	if (strcmp(value->text, "failed") == 0)
		return "\033[31m";
	for (size_t i = 0; i < COUNT_OF(kinds); i++)
		if (strcmp(column->name, kinds[i]) == 0)
			return "\033[36m";
	return NULL;
}

void value_write(struct writer *writer, enum value_kind kind, bool grouped,
		 const struct value *value)
{
	switch (kind) {
	case VALUE_BYTES:
	case VALUE_ADDRESS:
		if (!grouped) {
			writer_hexadecimal(writer, value->number);
			break;
		}
		/* fall through */
	case VALUE_COUNT:
	case VALUE_NUMBER:
	case VALUE_DEPTH:
		if (grouped)
			writer_grouped(writer, value->number);
		else
			writer_decimal(writer, value->number);
		break;
	case VALUE_CHANGE:
		write_change(writer, value->number);
		break;
	case VALUE_SECONDS:
		write_real(writer, "%.3f", value->real);
		break;
	case VALUE_SHARE:
		write_real(writer, "%.1f %%", 100 * value->real);
		break;
	case VALUE_TEXT:
		writer_escaped(writer, value->text);
		break;
	case VALUE_MEMORY:
		if (value->memory)
			words_write(writer, value->memory);
		else
			writer_escaped(writer, report_left_out);
		break;
	case VALUE_ANY:
		if (value->text)
			writer_escaped(writer, value->text);
		else
			write_number(writer, value);
	}
}

static void write_byte(struct writer *writer, uint8_t byte)
{
	static const char digits[] = "0123456789abcdef";

	writer_put(writer, digits[byte >> 4]);
	writer_put(writer, digits[byte & 15]);
}

static void write_contents(struct writer *writer, const struct memory_view *view)
{
	for (uint64_t done = 0, run; done < view->size; done += run) {
		const uint8_t *bytes = memory_view_run(view, done, &run);

		if (run == 0 || ferror(writer->out))
			return;
		for (uint64_t i = 0; bytes && i < run; i++)
			write_byte(writer, bytes[i]);
		if (bytes)
			continue;
		if (view->is_slim) {
			writer_text(writer, report_left_out);
			continue;
		}
		/* In a small core, these may be 2^63. */
		writer_put(writer, '(');
		writer_decimal(writer, run);
		writer_text(writer, " bytes that are not in the dump)");
	}
}

void plain_value(struct writer *writer, enum value_kind kind, const struct value *value,
		 void (*write_text)(struct writer *writer, const char *text))
{
	switch (kind) {
	case VALUE_COUNT:
	case VALUE_NUMBER:
	case VALUE_DEPTH:
	case VALUE_BYTES:
		writer_decimal(writer, value->number);
		break;
	case VALUE_CHANGE:
		if ((int64_t)value->number < 0)
			writer_put(writer, '-');
		writer_decimal(writer, (int64_t)value->number < 0 ? -value->number : value->number);
		break;
	case VALUE_ADDRESS:
		writer_text(writer, "0x");
		writer_hexadecimal(writer, value->number);
		break;
	case VALUE_SECONDS:
	case VALUE_SHARE:
		write_real(writer, "%.6f", value->real);
		break;
	case VALUE_TEXT:
		write_text(writer, value->text);
		break;
	case VALUE_MEMORY:
		if (value->memory)
			write_contents(writer, value->memory);
		else
			writer_escaped(writer, report_left_out);
		break;
	case VALUE_ANY:
		if (value->text)
			write_text(writer, value->text);
		else
			write_number(writer, value);
	}
}

static void write_unit(struct writer *writer, unsigned int unit)
{
	char buffer[8];

	snprintf(buffer, sizeof(buffer), "\\u%04x", unit & 0xffff);
	writer_bytes(writer, buffer, 6);
}

/* A character of several bytes, which are known to be right; the unsafe ones all fit one unit. */
static void write_unsafe(struct writer *writer, const char *text, size_t size)
{
	const unsigned char *bytes = (const unsigned char *)text;
	uint32_t character = bytes[0] & (0xff >> (size + 1));

	for (size_t i = 1; i < size; i++)
		character = character << 6 | (bytes[i] & 0x3f);
	write_unit(writer, character);
}

/* The escaped form tells what is harmless, and what is no UTF-8 at all. */
static size_t write_character(struct writer *writer, const char *text, size_t size)
{
	char buffer[ESCAPED_SIZE];
	size_t length;
	size_t taken = escape_character(text, size, buffer, &length);

	if (text[0] == '"' || text[0] == '\\') {
		writer_put(writer, '\\');
		writer_put(writer, text[0]);
	} else if (length == taken) {
		writer_bytes(writer, buffer, length);
	} else if (taken > 1) {
		write_unsafe(writer, text, taken);
	} else if ((unsigned char)text[0] < 0x80) {
		write_unit(writer, (unsigned char)text[0]);
	} else {
		writer_put(writer, '\\');
		writer_bytes(writer, buffer, length);
	}
	return taken;
}

void json_bytes(struct writer *writer, const char *bytes, size_t size)
{
	writer_put(writer, '"');
	while (size) {
		size_t taken = write_character(writer, bytes, size);

		bytes += taken;
		size -= taken;
	}
	writer_put(writer, '"');
}

void json_text(struct writer *writer, const char *text)
{
	json_bytes(writer, text, strlen(text));
}

void json_uri(struct writer *writer, const char *path)
{
	writer_put(writer, '"');
	if (path[0] == '/')
		writer_text(writer, "file://");
	for (; *path; path++) {
		unsigned char byte = (unsigned char)*path;
		char buffer[4];

		if (isalnum(byte) || strchr("/-._~", byte)) {
			writer_put(writer, *path);
			continue;
		}
		snprintf(buffer, sizeof(buffer), "%%%02X", byte);
		writer_bytes(writer, buffer, 3);
	}
	writer_put(writer, '"');
}

void json_key(struct writer *writer, const char *name)
{
	writer_put(writer, '"');
	for (; *name; name++)
		writer_put(writer, (char)(*name == ' ' ? '_' : *name));
	writer_text(writer, "\":");
}

const char *value_kind_name(enum value_kind kind)
{
	static const char *const names[] = {
		[VALUE_COUNT] = "count",     [VALUE_BYTES] = "bytes",	[VALUE_ADDRESS] = "address",
		[VALUE_NUMBER] = "number",   [VALUE_CHANGE] = "change", [VALUE_SECONDS] = "seconds",
		[VALUE_SHARE] = "share",     [VALUE_DEPTH] = "depth",	[VALUE_TEXT] = "text",
		[VALUE_MEMORY] = "contents", [VALUE_ANY] = "text",
	};

	return names[kind];
}

void json_value(struct writer *writer, enum value_kind kind, const struct value *value)
{
	bool quoted = kind == VALUE_ADDRESS || kind == VALUE_MEMORY;

	if (!value->present) {
		writer_text(writer, "null");
		return;
	}
	if (quoted)
		writer_put(writer, '"');
	plain_value(writer, kind, value, json_text);
	if (quoted)
		writer_put(writer, '"');
}

void json_finding(struct writer *writer, const struct finding *finding)
{
	writer_text(writer, "\"incomplete\":");
	writer_text(writer, json_truth(finding->weight == FINDING_INCOMPLETE));
	writer_text(writer, ",\"message\":");
	json_text(writer, finding->message);
}

void xml_text(struct writer *writer, const char *text)
{
	size_t size = strlen(text), length;
	char buffer[ESCAPED_SIZE];

	while (size) {
		size_t taken = escape_character(text, size, buffer, &length);
		const char *entity = buffer[0] == '&'	? "&amp;"
				     : buffer[0] == '<' ? "&lt;"
				     : buffer[0] == '>' ? "&gt;"
				     : buffer[0] == '"' ? "&quot;"
							: NULL;

		if (entity)
			writer_text(writer, entity);
		else
			writer_bytes(writer, buffer, length);
		text += taken;
		size -= taken;
	}
}
