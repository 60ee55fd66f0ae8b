/*
 * The sentence of a table, compiled once and filled in for every row.
 */
#ifndef ANALYZER_REPORT_SENTENCE_H
#define ANALYZER_REPORT_SENTENCE_H

#include "analyzer/report/report.h"

enum { MAXIMUM_PARTS = 96, DEEPEST_OPTIONAL = 4 };

enum part_kind {
	PART_LITERAL,
	PART_VALUE,    /* {name} */
	PART_GROUPED,  /* {name,} */
	PART_OPTIONAL, /* [: what follows is skipped if a value is absent */
};

struct part {
	enum part_kind kind;
	enum value_kind value_kind;
	const char *text; /* of a literal, in the table's sentence */
	size_t length;	  /* of a literal */
	size_t column;	  /* of a value */
	uint32_t needed;  /* of an optional part: a bit for each column in it */
	size_t end;	  /* of an optional part: the number of the next one */
};

struct sentence {
	struct part parts[MAXIMUM_PARTS];
	size_t count;
};

/* The table must be right: it is our own. */
void sentence_compile(const struct table *table, struct sentence *ret);

/* Write a row; values has one for each column. */
void sentence_write(const struct sentence *sentence, struct writer *writer,
		    const struct value *values);

#endif
