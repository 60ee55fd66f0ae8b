/* Shared by the files of this folder. */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/base/table.h"
#include "analyzer/query/columns.h"
#include "analyzer/sql/sql.h"

#include <sqlite3.h>

struct chains;
struct sql_cursor;
struct sql_rows;

/* A table that is made when it is first asked for: see stored.c. */
struct stored_cell {
	enum { CELL_NULL, CELL_INTEGER, CELL_REAL, CELL_TEXT, CELL_SHARED_TEXT } type;
	union {
		int64_t integer;
		double real;
		char *text; /* escaped; owned, unless it is shared with a row before */
	};
};

struct stored_rows {
	ARRAY(struct stored_cell) cells;
	size_t columns, count;
	struct error *error;
	bool known;
};

enum { MOST_STORED = 24 };

struct sql {
	struct analysis *analysis;
	sqlite3 *database;
	bool no_content;
	bool limited;	     /* SQLite's heap */
	struct error *error; /* of a table or a function, while a statement runs; owned */
	uint64_t visited;    /* rows that tables looked at */
	struct column_facts facts;
	struct chains *chains; /* of path(); NULL: none was asked for */
	struct stored_rows stored[MOST_STORED];
};

/* A table or a view, for those who list them. */
struct sql_table {
	const char *summary;
	struct table columns;	     /* its name, too; names may have blanks; none: shared ones */
	const struct sql_rows *rows; /* NULL: those of stored.c */
};

/* Tables of allocations, of references, members, objects and their items, and others. */
extern const struct sql_table sql_allocation_table, sql_free_table, sql_dominator_table,
	sql_reference_table, sql_member_table, sql_object_table, sql_item_table;
const struct sql_table *sql_stored_table(size_t number);

/* The columns of a table: its own, those of a set of ranges, or shared ones. */
const struct table *sql_columns(const struct sql_table *table);

/* All tables in the order in which they are listed; NULL at the end. */
const struct sql_table *sql_table_at(size_t number);

struct sql_view {
	const char *name, *summary, *select;
};
extern const struct sql_view sql_views[]; /* no name at the end */

/*
 * The CREATE TABLE statement of a table, to be freed: columns have the types of their values. In a
 * file, none are hidden, `id` is the key, and contents of memory (VALUE_ANY) are left out.
 */
char *sql_declare(const struct sql_table *table, bool is_in_file);

/* Run our own statements. */
struct error *sql_execute(struct sql *sql, const char *text);
/* schema: "", or one with a dot. */
struct error *sql_add_views(struct sql *sql, const char *schema);

struct error *sql_add_functions(struct sql *sql);
/* The number-th function's name from 0 on, or NULL at the end. */
const char *sql_function_name(size_t number);

void stored_rows_deinit(struct stored_rows *rows);

/*
 * Facts that allocations may share: all columns of `allocation` except its address, size and
 * retained size.
 */
struct sql_description {
	uint64_t words[4];
	allocation_id example;
};

/*
 * All that allocations may have in common: the number of the description, the size, the owner less
 * the id (0: it is the parent), what is retained, how many, the description of an object. Numbers
 * that follow from others are SQL_ABSENT.
 */
enum { SQL_SHAPE_WORDS = 6 };
#define SQL_ABSENT INT64_MIN

struct sql_shape {
	int64_t words[SQL_SHAPE_WORDS];
};

struct sql_descriptions {
	struct {
		HASH_TABLE(struct sql_description);
	} list;
	struct {
		HASH_TABLE(struct sql_shape);
	} shapes;
	size_t last; /* description that was found last */
};

/*
 * Add the functions shape_of(ID, SIZE, OWNER, PARENT, RETAINED, COUNT, OBJECT), the number of
 * an allocation's shape in the table, and owner_of(ID).
 */
struct error *sql_add_descriptions(struct sql *sql, struct sql_descriptions *descriptions);

/* Offsets of a reference, in its source and in its target, that no number stands for. */
struct sql_spot {
	uint64_t place, inside;
};

struct sql_spots {
	HASH_TABLE(struct sql_spot);
};

/* Add the function spot_of(OFFSET, TARGET_OFFSET), see file.c; what it numbers goes to the table.
 */
struct error *sql_add_spots(struct sql *sql, struct sql_spots *spots);

/* NULL: memory is short. */
void sql_result_escaped(sqlite3_context *context, const char *text);

/* The variable or the place on a stack at the address, or nothing. */
void sql_result_name(struct sql *sql, sqlite3_context *context, uint64_t address);

/* Keep the error for sql_run(), and return what SQLite is to see. */
int sql_fail(struct sql *sql, struct error *error);
/* The kept error, or else one for SQLite's status. */
struct error *sql_error(struct sql *sql, int status);

/*
 * A constraint that xBestIndex passes to xFilter: for each argument its column and an operator, as
 * "1=4<". The function below returns whether one was taken.
 */
struct sql_constraint {
	int column;
	unsigned char operator; /* SQLITE_INDEX_CONSTRAINT_... */
};
enum { MOST_CONSTRAINTS = 16 };
bool sql_take_constraint(sqlite3_index_info *info, int number, int *count,
			 struct sql_constraint taken[MOST_CONSTRAINTS]);
int sql_keep_constraints(sqlite3_index_info *info, const struct sql_constraint *taken, int count);

/* idxNum: bits that the table's .best sets, and behind them a bit for each column that is used. */
enum { PLAN_BITS = 3 };

/*
 * Bounds of a column as SQL has it: [least, most] of numbers that are not negative. false: no
 * number that can be an id, an address or a size is.
 */
bool sql_narrow(unsigned char operator, sqlite3_int64 value, uint64_t *least, uint64_t *most);

/* xBestIndex of a table with the id first, in the order of ids, and .narrow of it. */
int sql_best_ids(sqlite3_vtab *base, sqlite3_index_info *info);
void sql_narrow_ids(struct sql_cursor *cursor, int count, const char *constraints,
		    sqlite3_value **values);

/* Virtual tables and their cursors; SQLite knows them by their first members. */
struct sql_virtual {
	sqlite3_vtab base;
	struct sql *sql;
	const struct sql_table *table;
};

/* A module's pAux; owned by the connection. */
struct sql_module_data {
	struct sql *sql;
	const struct sql_table *table;
};

/* Add the table with the module that serves all. */
struct error *sql_add_table(struct sql *sql, const struct sql_table *table);
int sql_connect(sqlite3 *database, void *data, int count, const char *const *words,
		sqlite3_vtab **ret, char **ret_error);
int sql_disconnect(sqlite3_vtab *table);

/* The common beginning of cursors; those of some tables have more. */
struct sql_cursor {
	sqlite3_vtab_cursor base;
	struct sql *sql;
	const struct sql_table *table;
	const struct sql_rows *rows;
	size_t at, end;	   /* places: ids, or numbers of rows; there is a row where at < end */
	size_t id;	   /* of the allocation at the place */
	size_t hint;	   /* of the index */
	uint64_t reported; /* position that progress knows of */
	struct column_row row;
};

/*
 * A column of a table that is not in analyzer/query/columns.h is one line of a list, X(NAME, KIND,
 * GET). AS_COLUMN makes the column that reports show of it.
 */
#define AS_COLUMN(name, kind, ...) { name, kind },
#define AS_GETTER(name, kind, get) get,

typedef void sql_getter(struct sql_cursor *cursor, sqlite3_context *context);

/* How the rows of a table are found. All but best and begin may be NULL. */
struct sql_rows {
	size_t cursor_size;
	const struct column_list *shared; /* the table's columns; else it has its own getters */
	sql_getter *const *getters;
	int (*best)(sqlite3_vtab *base, sqlite3_index_info *info);
	void (*open)(struct sql_cursor *cursor);
	void (*close)(struct sql_cursor *cursor);
	/* Begin with all places; what columns need is there only when .narrow is called. */
	struct error *(*begin)(struct sql_cursor *cursor, int plan);
	void (*narrow)(struct sql_cursor *cursor, int count, const char *constraints,
		       sqlite3_value **values);
	/* Go to the first place at or behind this one where there may be a row. */
	void (*seek)(struct sql_cursor *cursor);
	/* True if there is a row at this place; what fails is kept by sql_fail(). */
	bool (*find)(struct sql_cursor *cursor);
	/* Go to the next row of this place, before the next place; false: there is none. */
	bool (*step)(struct sql_cursor *cursor);
	sqlite3_int64 (*row_id)(const struct sql_cursor *cursor); /* NULL: the id */
	/* Columns that have no getter. */
	void (*result)(struct sql_cursor *cursor, sqlite3_context *context, int column);
};

extern const struct sql_rows sql_stored_rows;

/* Parts of struct sql_rows, and a getter, for rows that belong to allocations. */
struct error *sql_begin_ids(struct sql_cursor *cursor);
void sql_seek_used(struct sql_cursor *cursor);
void sql_get_id(struct sql_cursor *cursor, sqlite3_context *context);

static inline void sql_result_number(sqlite3_context *context, uint64_t number)
{
	sqlite3_result_int64(context, (sqlite3_int64)number);
}

/* Text that lives as long as the connection, or NULL. */
static inline void sql_result_text(sqlite3_context *context, const char *text)
{
	if (text)
		sqlite3_result_text(context, text, -1, SQLITE_STATIC);
}

/* Nothing if it is absent; text is as in sql_result_text(). */
static inline void sql_result(sqlite3_context *context, struct value value)
{
	if (value.text)
		sql_result_text(context, value.text);
	else if (value.real != 0)
		sqlite3_result_double(context, value.real);
	else if (value.present)
		sql_result_number(context, value.number);
}
