/*
 * Text for people, in the form that a reader has in front of him: lines for the terminal, a manual
 * page, or Markdown.
 *
 * What help says of commands, sets and topics stands once, in their structs, as strings of
 * paragraphs, each a line. In a paragraph, 'words' in quotes are what is typed. Lines that begin
 * with four blanks are pictures and the like, shown as they stand.
 */
#pragma once

#include "analyzer/report/report.h"

#include <stdio.h>

enum piece { PIECE_NONE, PIECE_HEADING, PIECE_PARAGRAPH, PIECE_ENTRY, PIECE_VERBATIM };

enum { INDENT = 4 }; /* of lines to be shown as they stand */

enum heading_level { LEVEL_SECTION = 1, LEVEL_ITEM, LEVEL_PART };

struct document_form;

struct document {
	const struct document_form *form;
	struct report *report; /* of lines for the terminal; else NULL */
	FILE *out;	       /* of the other forms */
	size_t term_width;     /* of a list on the terminal; 0: as usual */
	enum piece last;       /* the last piece written */
};

/* Pieces of text are given with their lengths. */
struct document_form {
	void (*heading)(struct document *document, enum heading_level level, const char *text);
	void (*paragraph)(struct document *document, const char *text, size_t length);
	/* Lines, each ended and still indented. */
	void (*verbatim)(struct document *document, const char *text, size_t length);
	/* A term as it is typed, and its explanation. */
	void (*entry)(struct document *document, const char *term, const char *text);
};

extern const struct document_form form_terminal, form_man, form_markdown;

void document_heading(struct document *document, enum heading_level level, const char *text);
void document_entry(struct document *document, const char *term, const char *text);

/* Paragraphs and what stands between them. */
void document_text(struct document *document, const char *text);

/* Commands, one a line, maybe with a comment behind each. */
void document_examples(struct document *document, const char *lines);

/*
 * The quoted words that text begins with: 'so'. Their length with the quotes, or 0 if there are
 * none; previous is the character in front of text, or 0.
 */
size_t quoted_length(const char *text, size_t length, char previous);
