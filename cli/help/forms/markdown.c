/*
 * Markdown, as it is read on the web.
 */
#include "cli/help/document.h"

#include <string.h>

static void write_prose(FILE *out, const char *text, size_t length)
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
	write_prose(out, text, strlen(text));
	fputs(level == LEVEL_PART ? ":\n" : "\n", out);
}

static void markdown_paragraph(struct document *document, const char *text, size_t length)
{
	fputc('\n', document->out);
	write_prose(document->out, text, length);
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
	write_prose(document->out, text, strlen(text));
	fputc('\n', document->out);
}

const struct document_form form_markdown = {
	.heading = markdown_heading,
	.paragraph = markdown_paragraph,
	.verbatim = markdown_verbatim,
	.entry = markdown_entry,
};
