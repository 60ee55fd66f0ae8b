#include "analyzer/report/fit.h"

#include "analyzer/base/text.h"

#include <ctype.h>
#include <string.h>

static const char gap[] = "...";

/* The end of the escape sequence at text; text itself if there is none. */
static const char *skip_colour(const char *text, const char *end)
{
	const char *at = text;

	if (*at != '\033')
		return text;
	while (at < end && *at != 'm')
		at++;
	return at < end ? at + 1 : end;
}

size_t text_width(const char *text, size_t length)
{
	const char *end = text + length;
	size_t width = 0;

	while (text < end) {
		const char *next = skip_colour(text, end);

		if (next == text)
			width += ((unsigned char)*text++ & 0xc0) != 0x80;
		else
			text = next;
	}
	return width;
}

/* True if the blank at text separates a number from its unit, as in "71.0 KiB". */
static bool is_before_unit(const char *begin, const char *text, const char *end)
{
	static const char *const units[] = { "B",   "KiB", "MiB", "GiB",  "TiB",   "PiB",
					     "EiB", "ms",  "s",	  "byte", "bytes", "%" };

	if (text == begin || !isdigit((unsigned char)text[-1]))
		return false;
	text++;
	for (size_t i = 0; i < COUNT_OF(units); i++) {
		size_t length = strlen(units[i]), left = (size_t)(end - text);

		if (left >= length && memcmp(text, units[i], length) == 0 &&
		    (left == length || !isalnum((unsigned char)text[length])))
			return true;
	}
	return false;
}

/* The end of the word at text; text itself if there is none. */
static const char *word_end(const char *text, const char *end)
{
	const char *begin = text;

	while (text < end && (*text != ' ' || is_before_unit(begin, text, end)))
		text++;
	return text;
}

static const char *skip_blanks(const char *text, const char *end)
{
	while (text < end && *text == ' ')
		text++;
	return text;
}

size_t widest_word(const char *text, size_t length)
{
	const char *end = text + length;
	size_t widest = 0;

	while (text < end) {
		const char *word = skip_blanks(text, end);
		size_t width;

		text = word_end(word, end);
		width = text_width(word, (size_t)(text - word));
		widest = width > widest ? width : widest;
	}
	return widest;
}

/* Cut a word in its middle, between two characters. */
static void write_shortened(struct writer *writer, const char *word, size_t length, size_t width)
{
	size_t kept = width > strlen(gap) ? width - strlen(gap) : 1;
	size_t front = kept / 2, back = length - (kept - front);

	while (front > 0 && ((unsigned char)word[front] & 0xc0) == 0x80)
		front--;
	while (back < length && ((unsigned char)word[back] & 0xc0) == 0x80)
		back++;
	writer_bytes(writer, word, front);
	writer_text(writer, gap);
	writer_bytes(writer, word + back, length - back);
}

void fit_line(struct writer *writer, const char *text, size_t length, const struct fitting *fitting)
{
	const char *end = text + length;
	size_t used = 0, width = fitting->first;
	bool begins = true; /* nothing but blanks is on the line yet */

	while (text < end) {
		const char *word = skip_blanks(text, end);
		const char *next = word_end(word, end);
		size_t blanks = (size_t)(word - text), bytes = (size_t)(next - word);
		size_t wide = text_width(word, bytes);

		if (!bytes)
			return;
		if (!begins && used + blanks + wide > width) {
			writer_put(writer, '\n');
			writer_pad(writer, fitting->indent);
			width = fitting->width;
			used = blanks = 0;
		}
		writer_pad(writer, blanks);
		used += blanks + wide;
		if (fitting->shortened && blanks + wide > width)
			write_shortened(writer, word, bytes, width > blanks ? width - blanks : 0);
		else
			writer_bytes(writer, word, bytes);
		begins = false;
		text = next;
	}
}

void fit_lines(struct writer *writer, const char *text, size_t length, size_t width)
{
	enum { HANGING = 4 };
	const char *end = text + length;

	while (text < end) {
		const char *next = memchr(text, '\n', (size_t)(end - text));
		size_t indent = (size_t)(skip_blanks(text, end) - text) + HANGING;
		struct fitting fitting = { .first = width };

		next = next ? next : end;
		fitting.indent = indent < width / 2 ? indent : 0;
		fitting.width = width - fitting.indent;
		fit_line(writer, text, (size_t)(next - text), &fitting);
		writer_put(writer, '\n');
		text = next + (next < end);
	}
}

/* How many bytes at the start of text are shown within a width. */
static size_t bytes_within(const char *text, size_t size, size_t width)
{
	char buffer[ESCAPED_SIZE];
	size_t done = 0;

	while (done < size) {
		size_t length, taken = escape_character(text + done, size - done, buffer, &length);
		size_t wide = text_width(buffer, length);

		if (wide > width)
			break;
		width -= wide;
		done += taken;
	}
	return done;
}

char *text_cut(const char *text, size_t width)
{
	size_t size = strlen(text), kept = width > strlen(gap) ? width - strlen(gap) : 0;

	if (bytes_within(text, size, width) == size)
		return strdup(text);
	return format_text("%.*s%s", (int)bytes_within(text, size, kept), text, gap);
}

static bool is_within(const char *text, size_t width)
{
	return bytes_within(text, strlen(text), width) == strlen(text);
}

/* Without the arguments of a template, which give way first; NULL: it has none, or they are short.
 */
static char *without_arguments(const char *text)
{
	const char *start = strchr(text, '<'), *end = strrchr(text, '>');

	return start && end > start + 1 + strlen(gap)
		       ? format_text("%.*s<%s%s", (int)(start - text), text, gap, end)
		       : NULL;
}

char *text_shortened(const char *text, size_t width)
{
	size_t size = strlen(text), kept, front, back;
	_cleanup_(free) char *plain = NULL;
	char buffer[ESCAPED_SIZE];

	if (is_within(text, width))
		return strdup(text);
	plain = without_arguments(text);
	if (plain)
		return text_shortened(plain, width);
	kept = width > strlen(gap) ? width - strlen(gap) : 0;
	front = bytes_within(text, size, kept - kept / 3);
	for (back = front; bytes_within(text + back, size - back, kept / 3) < size - back;) {
		size_t length;

		back += escape_character(text + back, size - back, buffer, &length);
	}
	return format_text("%.*s%s%s", (int)front, text, gap, text + back);
}

static size_t total_width(const struct fitted_column *columns, size_t count)
{
	size_t width = 0;

	for (size_t i = 0; i < count; i++)
		if (!columns[i].hidden)
			width += columns[i].width + (width ? COLUMN_GAP : 0);
	return width;
}

static void set_widths(struct fitted_column *columns, size_t count, bool stacked)
{
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(columns[i].name);
		size_t name = stacked ? widest_word(columns[i].name, length) : length;

		columns[i].width = columns[i].content > name ? columns[i].content : name;
	}
}

/* Give the last column the remaining width, if that is enough for words. */
static bool fit_last(struct fitted_column *columns, size_t count, size_t width)
{
	struct fitted_column *last = &columns[count - 1];
	size_t name = widest_word(last->name, strlen(last->name));
	/* Wider columns are shortened. */
	size_t word = last->word < width / 3 ? last->word : width / 3;
	size_t least = word > name ? word : name;
	size_t total = total_width(columns, count), others = total - last->width;

	if (total <= width)
		return true;
	if (last->kind != VALUE_TEXT || last->hidden || others + least > width)
		return false;
	last->width = width - others;
	return true;
}

/* Less is the first to give way. */
static unsigned int rank(const struct fitted_column *column)
{
	if (column->minor)
		return 0;
	switch (column->kind) {
	case VALUE_SHARE:
		return 0;
	case VALUE_ADDRESS:
		return 1;
	case VALUE_TEXT:
		return 3;
	default:
		return 2;
	}
}

/* Hide the column that is missed least; false if none may be. */
static bool hide_one(struct fitted_column *columns, size_t count)
{
	struct fitted_column *least = NULL;

	for (size_t i = 1; i < count && (i + 1 < count || columns[i].kind != VALUE_TEXT); i++)
		if (!columns[i].hidden && (!least || rank(&columns[i]) <= rank(least)))
			least = &columns[i];
	if (least)
		least->hidden = true;
	return least;
}

bool fit_columns(struct fitted_column *columns, size_t count, size_t width)
{
	set_widths(columns, count, false);
	if (!width || !count || total_width(columns, count) <= width)
		return false;
	do
		set_widths(columns, count, true);
	while (!fit_last(columns, count, width) && hide_one(columns, count));
	return true;
}
