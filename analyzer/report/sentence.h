/*
 * The sentence of a table, compiled once and filled in for every row.
 *
 *	{name}			72 (0x48) of bytes, 0x55d0c0ffee10 of an address
 *	{name,}			1,234
 *	0x{name}({name,}) bytes	1,234 bytes
 *	{name|one|many}		one if the value is 1, else many
 *	{name|count}		a noun in the plural: in the singular if the count is 1
 *	[... {name} ...]	nothing if the value is absent
 *	{[} {]}			a bracket
 *
 * As chap has it, all hexadecimal numbers stand as the sentence spells them, with or without 0x,
 * and the plural is used always.
 */
#pragma once

#include "analyzer/report/report.h"

enum { MAXIMUM_PARTS = 128, DEEPEST_OPTIONAL = 4 };

enum part_kind {
	PART_LITERAL,
	PART_VALUE,    /* {name}, or 0x{name} */
	PART_GROUPED,  /* {name,} */
	PART_SUM,      /* 0x{name} ({name,}) bytes */
	PART_PLURAL,   /* {name|one|many} */
	PART_NOUN,     /* {name|count} */
	PART_OPTIONAL, /* [: what follows is skipped if a value is absent */
};

struct part {
	enum part_kind kind;
	enum value_kind value_kind;
	const char *text; /* of a literal, of what is between a sum's numbers, or of many */
	size_t length;	  /* of text */
	const char *one;  /* of a plural */
	size_t one_length;
	bool prefixed;	 /* a value, with 0x in front */
	size_t column;	 /* of a value */
	size_t count;	 /* of a noun: the column of its count */
	uint32_t needed; /* of an optional part: a bit for each column in it */
	size_t end;	 /* of an optional part: the number of the next one */
};

struct sentence {
	const struct table *table; /* borrowed */
	struct part parts[MAXIMUM_PARTS];
	size_t count;
};

/* The table must be right: it is our own. */
void sentence_compile(const struct table *table, struct sentence *ret);

/* How a row is written. */
struct sentence_style {
	bool as_chap;
	bool in_units; /* sums also as "1.2 MiB" */
	bool colour;   /* as by value_colour() */
};

/* Write a row; values has one for each column. */
void sentence_write(const struct sentence *sentence, struct writer *writer,
		    const struct value *values, struct sentence_style style);

/* For formats without sentences: a row's, on one line. To be freed; NULL if memory is short. */
char *sentence_text(const struct table *table, const struct value *values);
