/*
 * The columns of allocations: those of SQL's tables of them, of `list --columns` and of `help
 * columns`. Each is a line of a list in columns.c, and nowhere else.
 *
 * A column says which stages it needs; what it needs beside those is made once and kept among the
 * facts. Then it is read of one row after the other.
 */
#pragma once

#include "analyzer/kinds/named_kinds.h"
#include "analyzer/report/report.h"
#include "analyzer/runtimes/object_values.h"

/* Facts that columns need beside stages of the analysis; arrays are by allocation. */
struct column_facts {
	struct analysis *analysis; /* borrowed */
	bool no_content;	   /* values that are contents of memory are left out */
	struct named_kinds kinds;
	ARRAY(allocation_id) parents;  /* what dominates it, or NO_ALLOCATION */
	ARRAY(uint64_t) object_blocks; /* bytes of an object's blocks */
};

void column_facts_deinit(struct column_facts *facts);

/* An allocation whose columns are read, and what helps to read those of the next. */
struct column_row {
	const struct column_facts *facts;
	allocation_id id;
	size_t hint, region_hint;     /* of the index */
	char *texts[MAXIMUM_COLUMNS]; /* that were made for this row; owned */
	size_t text_count;
	bool no_memory; /* for a text */
	struct view view;
	allocation_id read_id; /* the value is of this object, or NO_ALLOCATION */
	struct object_value value;
};

void column_row_init(struct column_row *row, const struct column_facts *facts);
/* Release what was made for it. */
void column_row_end(struct column_row *row);

struct allocation_column {
	const char *summary; /* NULL: that of the column of the same name in a list before */
	struct value (*get)(struct column_row *row);
	uint32_t stages;				   /* that it needs, a bit for each */
	struct error *(*need)(struct column_facts *facts); /* make what else it needs; or NULL */
};

struct column_list {
	struct table table; /* names and kinds */
	const struct allocation_column *columns;
	uint32_t hidden; /* SQL's `*` leaves out columns that need these stages */
};

/* Columns of used and free allocations, of all used ones as a tree, and of languages' objects. */
extern const struct column_list allocation_columns, free_columns, dominator_columns, object_columns;

/* Build what the columns of the list need, a bit of used for each. */
struct error *columns_need(struct column_facts *facts, const struct column_list *list,
			   uint32_t used);

/* The name and summary of each column, those of several lists once; false at the end. */
bool column_at(size_t number, const char **ret_name, const char **ret_summary);

/* Columns chosen by their names, for used allocations and for free ones. */
struct column_choice {
	struct table table;
	const struct allocation_column *of_used[MAXIMUM_COLUMNS], *of_free[MAXIMUM_COLUMNS];
};

/* Choose columns: "address,size,kind". */
struct error *column_choice_parse(const char *names, struct column_choice *ret);
struct error *column_choice_need(const struct column_choice *choice, struct column_facts *facts,
				 const struct bitmap *members);
/* Write the row of a table with the choice's columns. */
struct error *column_choice_write(const struct column_choice *choice, struct column_row *row,
				  struct report *report);

/* The allocation that it is part of in the end, or NO_ALLOCATION (STAGE_OWNERS). */
allocation_id allocation_owner(const struct analysis *analysis, allocation_id id);

/* A language's value; its text is borrowed. */
struct value value_of_object(const struct object_value *value, bool no_content);
