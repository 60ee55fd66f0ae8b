/*
 * Rows of typed values, on their way to a reader.
 *
 * A command writes rows; a format makes text, or anything else, of them. A table may carry a
 * sentence, as people know it from older tools, which the text format fills in for each row instead
 * of drawing columns:
 *
 *	"{count} allocations use 0x{bytes} ({bytes,}) bytes."
 *
 * {name} is the column's value, bytes and addresses in hexadecimal without 0x; {name,} is it in
 * decimal with thousands separators. A part in [brackets] is left out where a value in it is
 * absent, so one sentence can serve rows of several kinds; the parts within such a part count for
 * themselves. A bracket that is meant to be seen is written {[} or {]}. "\n" ends a line within the
 * sentence; one is added at its end. Memory is several lines, so it stands alone between two ends
 * of lines.
 */
#pragma once

#include "analyzer/base/error.h"
#include "analyzer/base/macros.h"
#include "analyzer/report/writer.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { MAXIMUM_COLUMNS = 32 };

enum value_kind {
	VALUE_COUNT,
	VALUE_BYTES,
	VALUE_ADDRESS,
	VALUE_NUMBER,  /* decimal, a name rather than an amount: a thread's */
	VALUE_CHANGE,  /* by how much something grew, or shrank */
	VALUE_SECONDS, /* a real number */
	VALUE_SHARE,   /* of a whole, from 0 to 1: a bar in columns of text */
	VALUE_DEPTH,   /* how deep in a tree: indents the last column of text */
	VALUE_TEXT,
	VALUE_MEMORY, /* the contents of memory, as words */
	/* Whatever a row has: text; else a real number that is not 0; else an integer, as a change
	 */
	VALUE_ANY,
};

/* People read several columns of programs as a single one. */
enum column_reader { FOR_ALL, FOR_PEOPLE, FOR_PROGRAMS };

struct column {
	const char *name;
	enum value_kind kind;
	bool minor; /* where a terminal is too narrow for all, this one is left out first */
	enum column_reader reader;
	const char *heading; /* for people, where the name is a key that stays; or NULL */
};

struct table {
	const char *name;     /* noun for a row, as "allocation" */
	const char *sentence; /* NULL: columns */
	size_t column_count;
	struct column columns[MAXIMUM_COLUMNS];
};

static inline const char *column_heading(const struct column *column)
{
	return column->heading ? column->heading : column->name;
}

/* A column, where a macro lists some. */
#define COLUMN(name, kind) \
	{                  \
		name, kind \
	}

/* The initializer of a table: TABLE("part", NULL, { "name", VALUE_TEXT }, { "size", VALUE_BYTES })
 */
#define TABLE(name, sentence, ...)                                            \
	{                                                                     \
		name, sentence, COUNT_OF(((struct column[]){ __VA_ARGS__ })), \
		{                                                             \
			__VA_ARGS__                                           \
		}                                                             \
	}

/* Contents of memory, read piece by piece while they are written. */
struct memory_view {
	uint64_t address, size;
	uint64_t origin; /* address shown as 0: addresses become offsets */
	bool ascii;	 /* show characters, too */
	bool blank;	 /* behind the last word of a line that is not full */
	bool is_slim;	 /* what is absent was left out */
	size_t room;	 /* how wide lines may be, in characters; 0: as wide as they are */
	size_t word;	 /* bytes of a word; 0: 8 */
	/*
	 * The bytes at address, *ret_size of them in a row; NULL if these *ret_size bytes are
	 * absent. No bytes at all end it early.
	 */
	const uint8_t *(*bytes)(const void *source, uint64_t address, uint64_t *ret_size);
	const void *source;
};

/*
 * The bytes that stand done bytes behind the view's address, *ret_run of them in a row; NULL if so
 * many are absent: all there are in a row.
 */
const uint8_t *memory_view_run(const struct memory_view *view, uint64_t done, uint64_t *ret_run);

/* A value of a row; the column's kind says which member counts. All zeros is an absent value. */
struct value {
	bool present;
	uint64_t number; /* count, bytes, address, number; an int64_t: change */
	double real;
	const char *text; /* may be hostile; borrowed until the row ends, as memory is */
	const struct memory_view *memory; /* NULL: its contents are left out */
};

#define ABSENT ((struct value){ 0 })

static inline struct value value_number(uint64_t number)
{
	return (struct value){ .present = true, .number = number };
}

static inline struct value value_real(double real)
{
	return (struct value){ .present = true, .real = real };
}

/* NULL is an absent value. */
static inline struct value value_text(const char *text)
{
	return (struct value){ .present = text, .text = text };
}

static inline struct value value_memory(const struct memory_view *memory)
{
	return (struct value){ .present = true, .memory = memory };
}

static inline struct value value_itself(struct value value)
{
	return value;
}

/* A number, a real number, text, a view of memory, or a struct value, as a value. */
#define VALUE(x) \
	_Generic((x),                                      \
		 struct value: value_itself,               \
		 double: value_real,                       \
		 char *: value_text,                       \
		 const char *: value_text,                 \
		 struct memory_view *: value_memory,       \
		 const struct memory_view *: value_memory, \
		 default: value_number)(x)

/* x is evaluated only if the condition holds; else the value is absent. */
#define VALUE_IF(condition, x) ((condition) ? VALUE(x) : ABSENT)

/* The number; 0 is an absent value. */
static inline struct value value_nonzero(uint64_t number)
{
	return VALUE_IF(number != 0, number);
}

/* Values that every row carries beside its own, in formats of data; all borrowed. */
enum { MOST_TAGS = 16 };
struct report_tags {
	struct column columns[MOST_TAGS];
	struct value values[MOST_TAGS];
	size_t count;
};

/*
 * Which tables of a command are written. A format of one table writes the main one, which is the
 * first unless the command says otherwise.
 */
enum { MOST_TABLE_NAMES = 24 };
struct table_choice {
	const char
		*wanted;  /* the only one, in all formats; _ or - may stand for a blank; or NULL */
	const char *main; /* NULL: the first one */
	bool aside;	  /* tables begun now are not the command's own */
	bool found;	  /* the one wanted was begun */
	bool differs;	  /* another one of that name has other columns, and is left out */
	/* Names of the tables begun, each once; borrowed. */
	const char *names[MOST_TABLE_NAMES];
	size_t name_count;
};

bool table_has_name(const char *table, const char *wanted);

struct report_format;

/* The subject of a report; all borrowed. */
struct report_subject {
	const char *core;		 /* the dump's path, or NULL */
	const char *command;		 /* as it was typed */
	const struct findings *findings; /* of the dump, in the end; or NULL */
};

struct report {
	const struct report_format *format;
	const struct report_subject *subject; /* borrowed; may be NULL */
	FILE *out;			      /* borrowed */
	struct writer writer;		      /* to out */
	bool colour;
	bool block_bars;	   /* bars are of Unicode's blocks instead of ASCII */
	size_t width;		   /* of the terminal that it is read on, in characters; 0: none */
	uint64_t most_text;	   /* bytes of a text in HTML; 0: all */
	bool no_content;	   /* the contents of memory are left out */
	bool shows_kept;	   /* but those that a slim core has */
	bool quiet;		   /* and notes */
	bool chap;		   /* lines are as chap has them, to the letter */
	bool with_kinds;	   /* documents in JSON say of which kinds columns are */
	bool shortened;		   /* only the largest are shown, and --all was not given */
	struct memory_view memory; /* of the row that is being written */
	const struct table *table;
	/*
	 * The row's values, up to the column of the next one; those of tags follow its last column.
	 */
	struct value values[MAXIMUM_COLUMNS + MOST_TAGS];
	size_t column;
	size_t row;
	bool written;			/* there was a table */
	bool skipping;			/* this one is left out */
	uint64_t most_rows;		/* of a table; 0: all */
	uint64_t left_out;		/* rows of this one that were too many */
	const struct report_tags *tags; /* borrowed; or NULL */
	struct table_choice *choice;	/* borrowed; or NULL: all tables */
	/* One that gets the same rows, in another format; borrowed, or NULL. */
	struct report *next;
	void *state;	     /* the format's own */
	struct error *error; /* the first failure to write */
};

/*
 * The contract of a format; see formats/. It writes to report->writer, which is flushed behind each
 * table. What may be NULL says so.
 */
struct report_format {
	const char *name;
	const char *summary;
	const char *command;			    /* the only one that it is for; NULL: any */
	bool one_table;				    /* see struct table_choice */
	size_t state_size;			    /* of report->state, zeroed at first */
	void (*begin_table)(struct report *report); /* may be NULL */
	/* A row of values, one for each column; texts and contents are borrowed. */
	void (*row)(struct report *report, const struct value *values);
	void (*end_table)(struct report *report); /* may be NULL */
	void (*close)(struct report *report);	  /* may be NULL; state is freed then */
};

extern const struct report_format *const report_formats[]; /* NULL at end */

/* An unknown name is an error that says which may be meant. */
struct error *report_format_find(const char *name, const struct report_format **ret);

struct error *report_open(const struct report_format *format, FILE *out, bool colour,
			  struct report *ret);

/* Close it, not those next to it, and say whether all that was written got out.
 */
struct error *report_close(struct report *report);

/* Text for people, and nothing but that: what differs little may be one line. */
bool report_is_brief(const struct report *report);

/* True if no reader is left, so that a long command may end. */
bool report_broken(const struct report *report);

/* After an error, report_close() ends the table; report_cut_table() does so before another one. */
void report_begin_table(struct report *report, const struct table *table);
void report_cut_table(struct report *report);
void report_values(struct report *report, const struct value *values, size_t count);
void report_end_row(struct report *report);
void report_end_table(struct report *report);

/* "... and 3 more lines not shown." */
void report_say_left_out(struct report *report, uint64_t count, const char *noun);

/* The next values of the row: report_add(report, address, size, ABSENT, "name"). */
#define report_add(report, ...)                                                             \
	report_values(report, (const struct value[]){ FOR_EACH(VALUE_ITEM, __VA_ARGS__) },  \
		      sizeof((const struct value[]){ FOR_EACH(VALUE_ITEM, __VA_ARGS__) }) / \
			      sizeof(struct value))

#define VALUE_ITEM(x) VALUE(x),

/*
 * Set the value of the column of that name; all behind the last report_add() that are not set in
 * the row are absent.
 */
#define report_set(report, column, x) report_set_value(report, column, VALUE(x))
void report_set_value(struct report *report, const char *column, struct value value);

/* Like report_add(), and end the row. */
#define report_row(report, ...)                  \
	do {                                     \
		report_add(report, __VA_ARGS__); \
		report_end_row(report);          \
	} while (0)

/* A table of this one row. */
#define report_single(report, table, ...)          \
	do {                                       \
		report_begin_table(report, table); \
		report_row(report, __VA_ARGS__);   \
		report_end_table(report);          \
	} while (0)

/* For formats of data: columns with those of tags, whose values stand behind the others. */
size_t report_column_count(const struct report *report);
/* A tag's name that the table has as well ends with _2. */
enum { COLUMN_NAME_SIZE = 128 };
enum value_kind report_kind(const struct report *report, size_t number);
const struct column *report_column(const struct report *report, size_t number,
				   char ret_name[static COLUMN_NAME_SIZE]);

/* For formats: the value of the named column, "" or 0 if it is absent or there is no such column.
 */
const char *report_text_of(const struct report *report, const struct value *values,
			   const char *column);
uint64_t report_number_of(const struct report *report, const struct value *values,
			  const char *column);

/* Text that is the contents of memory, which may have to be left out. */
const char *report_content(const struct report *report, const char *text);

/* Stands for contents that are left out. */
extern const char report_left_out[];
