/*
 * Lines for the terminal, each a row of a report.
 */
#include "cli/help/document.h"

#include <stdarg.h>
#include <string.h>

enum {
	LINE_WIDTH = 78,
	TERM_WIDTH = 26, /* of what an entry explains, if not told */
};

static void write_line(struct document *document, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void write_line(struct document *document, const char *format, ...)
{
	_cleanup_(free) char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	report_row(document->report, text ? text : "");
}

/* How many bytes of text go on a line of that width. */
static size_t fitting(const char *text, size_t length, size_t width)
{
	size_t fits = width;

	if (length <= width)
		return length;
	while (fits > 0 && text[fits] != ' ')
		fits--;
	return fits > 0 ? fits : width;
}

/* Fill lines with text; the first begins with name, all are indented alike. */
static void write_filled(struct document *document, const char *name, size_t indent,
			 const char *text, size_t length)
{
	do {
		size_t fits = fitting(text, length, LINE_WIDTH - indent);

		write_line(document, "%-*s%.*s", (int)indent, name, (int)fits, text);
		name = "";
		while (fits < length && text[fits] == ' ')
			fits++;
		text += fits;
		length -= fits;
	} while (length > 0);
}

static void separate(struct document *document)
{
	if (document->last != PIECE_NONE && document->last != PIECE_HEADING)
		write_line(document, "%s", "");
}

static void terminal_heading(struct document *document, enum heading_level level, const char *text)
{
	if (document->last != PIECE_NONE)
		write_line(document, "%s", "");
	write_line(document, "%s%s", text, level == LEVEL_PART ? ":" : "");
}

static void terminal_paragraph(struct document *document, const char *text, size_t length)
{
	separate(document);
	write_filled(document, "", 0, text, length);
}

static void terminal_verbatim(struct document *document, const char *text, size_t length)
{
	const char *end = text + length;

	separate(document);
	while (text < end) {
		size_t width = strcspn(text, "\n");

		write_line(document, "%.*s", (int)width, text);
		text += width + 1;
	}
}

static void terminal_entry(struct document *document, const char *term, const char *text)
{
	size_t width = document->term_width ? document->term_width : TERM_WIDTH;
	_cleanup_(free) char *indented = NULL;

	if (document->last != PIECE_ENTRY)
		separate(document);
	if (asprintf(&indented, "  %s  ", term) < 0) {
		indented = NULL;
		return;
	}
	if (strlen(indented) > width) {
		write_line(document, "  %s", term);
		indented[0] = '\0';
	}
	write_filled(document, indented, width, text, strlen(text));
}

const struct document_form form_terminal = {
	.heading = terminal_heading,
	.paragraph = terminal_paragraph,
	.verbatim = terminal_verbatim,
	.entry = terminal_entry,
};
