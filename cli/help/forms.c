/*
 * The forms of documents: a manual page, Markdown, lines for the terminal.
 */
#include "analyzer/base/text.h"
#include "cli/help/document.h"

#include <ctype.h>
#include <string.h>

/* A manual page, for man(1): see groff_man(7). */

enum { SOURCE_WIDTH = 50 }; /* from there on, a blank ends a line */

/* Escape text to be typed, so that hyphens and quotes come out unchanged. */
static void write_typed(FILE *out, const char *text, size_t length)
{
	static const char SPECIAL[] = "\\-'`^~";
	static const char *const escaped[] = { "\\e", "\\-", "\\(aq", "\\(ga", "\\(ha", "\\(ti" };

	if (length > 0 && *text == '.')
		fputs("\\&", out);
	for (size_t i = 0; i < length; i++) {
		const char *found = strchr(SPECIAL, text[i]);

		if (found)
			fputs(escaped[found - SPECIAL], out);
		else
			fputc(text[i], out);
	}
}

/* Break the page's source, not the page, at the beginning of a word. */
static size_t break_line(FILE *out, const char *text, size_t column)
{
	if (column < SOURCE_WIDTH) {
		fputc(' ', out);
		return column + 1;
	}
	fputs(*text == '.' || *text == '\'' ? "\n\\&" : "\n", out);
	return 0;
}

static void write_man(FILE *out, const char *text, size_t length)
{
	char previous = '\0';
	size_t column = 0;

	if (length > 0 && (*text == '.' || *text == '\''))
		fputs("\\&", out);
	for (size_t i = 0; i < length; i++) {
		size_t quoted = quoted_length(text + i, length - i, previous);

		previous = text[i];
		column++;
		if (quoted) {
			fputs("\\fB", out);
			write_typed(out, text + i + 1, quoted - 2);
			fputs("\\fR", out);
			i += quoted - 1;
			column += quoted;
			previous = '\'';
		} else if (text[i] == ' ' && i + 1 < length) {
			column = break_line(out, text + i + 1, column);
		} else if (strchr("\\~^`-", text[i])) {
			write_typed(out, text + i, 1);
		} else {
			fputc(text[i], out);
		}
	}
	fputc('\n', out);
}

static void man_heading(struct document *document, enum heading_level level, const char *text)
{
	FILE *out = document->out;

	switch (level) {
	case LEVEL_SECTION:
		fputs(".SH ", out);
		for (; *text; text++)
			fputc(toupper((unsigned char)*text), out);
		fputc('\n', out);
		return;
	case LEVEL_ITEM:
		fputs(".SS ", out);
		break;
	case LEVEL_PART:
		fputs(".PP\n.I ", out);
		break;
	}
	write_typed(out, text, strlen(text));
	fputc('\n', out);
}

static void man_paragraph(struct document *document, const char *text, size_t length)
{
	if (document->last != PIECE_HEADING)
		fputs(".PP\n", document->out);
	write_man(document->out, text, length);
}

static void man_verbatim(struct document *document, const char *text, size_t length)
{
	const char *end = text + length;
	FILE *out = document->out;

	fputs(document->last == PIECE_HEADING ? "" : ".PP\n", out);
	fputs(".RS 4\n.nf\n", out);
	while (text < end) {
		size_t width = strcspn(text, "\n");

		if (width > INDENT)
			write_typed(out, text + INDENT, width - INDENT);
		fputc('\n', out);
		text += width + 1;
	}
	fputs(".fi\n.RE\n", out);
}

static void man_entry(struct document *document, const char *term, const char *text)
{
	fputs(".TP\n\\fB", document->out);
	write_typed(document->out, term, strlen(term));
	fputs("\\fR\n", document->out);
	write_man(document->out, text, strlen(text));
}

const struct document_form form_man = {
	.heading = man_heading,
	.paragraph = man_paragraph,
	.verbatim = man_verbatim,
	.entry = man_entry,
};

/* Markdown, as it is read on the web. */

static void write_markdown(FILE *out, const char *text, size_t length)
{
	char previous = '\0';

	for (size_t i = 0; i < length; i++) {
		size_t quoted = quoted_length(text + i, length - i, previous);

		previous = text[i];
		if (quoted) {
			fprintf(out, "`%.*s`", (int)quoted - 2, text + i + 1);
			i += quoted - 1;
			previous = '\'';
			continue;
		}
		if (strchr("\\*_<>[]`|", text[i]))
			fputc('\\', out);
		fputc(text[i], out);
	}
}

static void markdown_heading(struct document *document, enum heading_level level, const char *text)
{
	FILE *out = document->out;

	if (document->last != PIECE_NONE)
		fputc('\n', out);
	if (level != LEVEL_PART)
		fputs(level == LEVEL_SECTION ? "## " : "### ", out);
	write_markdown(out, text, strlen(text));
	fputs(level == LEVEL_PART ? ":\n" : "\n", out);
}

static void markdown_paragraph(struct document *document, const char *text, size_t length)
{
	fputc('\n', document->out);
	write_markdown(document->out, text, length);
	fputc('\n', document->out);
}

static void markdown_verbatim(struct document *document, const char *text, size_t length)
{
	fprintf(document->out, "\n%.*s", (int)length, text);
	if (length && text[length - 1] != '\n')
		fputc('\n', document->out);
}

static void markdown_entry(struct document *document, const char *term, const char *text)
{
	if (document->last != PIECE_ENTRY)
		fputc('\n', document->out);
	fprintf(document->out, "- `%s`: ", term);
	write_markdown(document->out, text, strlen(text));
	fputc('\n', document->out);
}

const struct document_form form_markdown = {
	.heading = markdown_heading,
	.paragraph = markdown_paragraph,
	.verbatim = markdown_verbatim,
	.entry = markdown_entry,
};

/* Lines for the terminal, each a row of a report. */

enum {
	LINE_WIDTH = 78,
	TERM_WIDTH = 26, /* width of an entry's term by default */
};

static void write_line(struct document *document, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void write_line(struct document *document, const char *format, ...)
{
	_cleanup_(free) char *text = FORMATTED(format);

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
	indented = format_text("  %s  ", term);
	if (!indented)
		return;
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
