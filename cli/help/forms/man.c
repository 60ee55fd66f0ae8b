/*
 * A manual page, for man(1): see groff_man(7).
 */
#include "cli/help/document.h"

#include <ctype.h>
#include <string.h>

enum { SOURCE_WIDTH = 50 }; /* from there on, a blank ends a line */

/* What is typed must come out as it is: no hyphens, no curly quotes. */
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

/* Where a word begins, a line may: of the page's source, not of the page. */
static size_t break_line(FILE *out, const char *text, size_t column)
{
	if (column < SOURCE_WIDTH) {
		fputc(' ', out);
		return column + 1;
	}
	fputs(*text == '.' || *text == '\'' ? "\n\\&" : "\n", out);
	return 0;
}

static void write_prose(FILE *out, const char *text, size_t length)
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
	write_prose(document->out, text, length);
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
	write_prose(document->out, text, strlen(text));
}

const struct document_form form_man = {
	.heading = man_heading,
	.paragraph = man_paragraph,
	.verbatim = man_verbatim,
	.entry = man_entry,
};
