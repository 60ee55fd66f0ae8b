#include "cli/help/document.h"

#include <ctype.h>
#include <string.h>

void document_heading(struct document *document, enum heading_level level, const char *text)
{
	document->form->heading(document, level, text);
	document->last = PIECE_HEADING;
}

void document_entry(struct document *document, const char *term, const char *text)
{
	document->form->entry(document, term, text);
	document->last = PIECE_ENTRY;
}

static bool is_verbatim(const char *line)
{
	return strncmp(line, "    ", INDENT) == 0;
}

/* The length of the longest line that is shown unchanged. */
static size_t verbatim_length(const char *text)
{
	const char *end = text, *line = text;

	while (is_verbatim(line) || *line == '\n') {
		bool is_empty = *line == '\n';

		line += strcspn(line, "\n");
		line += *line == '\n';
		if (!is_empty)
			end = line;
	}
	return (size_t)(end - text);
}

void document_text(struct document *document, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\n");

		if (is_verbatim(text)) {
			length = verbatim_length(text);
			document->form->verbatim(document, text, length);
			document->last = PIECE_VERBATIM;
		} else if (length > 0) {
			document->form->paragraph(document, text, length);
			document->last = PIECE_PARAGRAPH;
		}
		text += length;
		text += *text == '\n';
	}
}

/* The column to which comments are aligned. */
static int widest_command(const char *lines)
{
	size_t widest = 0;

	while (*lines) {
		size_t length = strcspn(lines, "\n");
		const char *comment = memmem(lines, length, " #", 2);
		size_t width = comment ? (size_t)(comment - lines) : 0;

		while (width > 0 && lines[width - 1] == ' ')
			width--;
		if (width > widest)
			widest = width;
		lines += length + (lines[length] == '\n');
	}
	return (int)widest;
}

static void print_example(FILE *out, const char *line, size_t length, int width)
{
	const char *comment = memmem(line, length, " #", 2);
	size_t command = comment ? (size_t)(comment - line) : length;

	while (command > 0 && line[command - 1] == ' ')
		command--;
	if (comment)
		fprintf(out, "    %-*.*s  %.*s\n", width, (int)command, line,
			(int)(length - (size_t)(comment + 1 - line)), comment + 1);
	else
		fprintf(out, "    %.*s\n", (int)command, line);
}

void document_examples(struct document *document, const char *lines)
{
	_cleanup_(free) char *text = NULL;
	size_t size = 0;
	int width = widest_command(lines);
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	while (*lines) {
		size_t length = strcspn(lines, "\n");

		print_example(out, lines, length, width);
		lines += length + (lines[length] == '\n');
	}
	if (fclose(out) == 0)
		document_text(document, text);
}

size_t quoted_length(const char *text, size_t length, char previous)
{
	if (length == 0 || *text != '\'' || isalnum((unsigned char)previous))
		return 0;
	for (size_t i = 2; i < length; i++)
		if (text[i] == '\'' && (i + 1 == length || !isalnum((unsigned char)text[i + 1])))
			return i + 1;
	return 0;
}
