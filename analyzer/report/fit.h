/*
 * Text that fits a terminal: lines end between words, and columns give way.
 *
 * A word is what stands between blanks; a number and its unit, as "71.0 KiB", are one. Escape
 * sequences that colour text take no room.
 */
#pragma once

#include "analyzer/report/report.h"

/* How wide text of length bytes is, in characters. */
size_t text_width(const char *text, size_t length);

/* How wide the widest word in it is. */
size_t widest_word(const char *text, size_t length);

/*
 * The text without its middle, "std::map<...>::insert", so that what is shown of it is not wider;
 * to be freed. NULL if memory is short.
 */
char *text_shortened(const char *text, size_t width);

/* The beginning of the text that fits. */
char *text_cut(const char *text, size_t width);

/* Widths at which lines end. */
struct fitting {
	size_t first; /* the width of the first line, and of the others less their indentation */
	size_t width;
	size_t indent;	/* of the others */
	bool shortened; /* a word that is wider than a line: in the middle, to "libfoo...tree"; else
			 * it stands out */
};

/* Write one line of text, without its end, in lines of at most that width. */
void fit_line(struct writer *writer, const char *text, size_t length,
	      const struct fitting *fitting);

/* Like fit_line(), for each line of text, indented by four more than its first line. */
void fit_lines(struct writer *writer, const char *text, size_t length, size_t width);

/* A column of a table, as wide as it has to be. */
struct fitted_column {
	const char *name;
	enum value_kind kind;
	size_t content; /* how wide the widest value is */
	size_t word;	/* how wide the widest word in a value is */
	size_t width;	/* the width assigned to it */
	bool hidden;	/* nothing */
	bool minor;	/* as in struct column */
};

enum { COLUMN_GAP = 2 };

/*
 * Share the width among the columns, 0: as much as they need. Where it is short, first the names
 * are stacked word by word, which is returned; then the last column has several lines in a row;
 * then columns are hidden by rank: bars and minor columns, addresses, then amounts, then text, the
 * last ones first, but not the first of all, nor text that is the last one.
 */
bool fit_columns(struct fitted_column *columns, size_t count, size_t width);
