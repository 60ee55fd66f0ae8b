/*
 * A core as a database: questions in SQL, answered from what the analysis has in memory.
 *
 * Tables are virtual tables of SQLite. Those of allocations and references are not copied: a row is
 * an id, conditions on ids, addresses and kinds narrow what is visited, and a stage of the analysis
 * is built when a column that needs it is first read. The others are small; each is made when it is
 * first asked for.
 *
 * Nothing can be written and no file opened by a question. Addresses are integers in SQL, those
 * from 2^63 on negative, and hexadecimal with 0x in reports.
 */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/report.h"

struct sql;

/*
 * The state that the analysis keeps between questions, opened by the first: names of kinds,
 * dominators, and members of objects. The analysis owns it.
 */
struct error *sql_of(struct analysis *analysis, bool no_content, struct sql **ret);

/* Borrows the analysis. no_content: contents of memory are left out of answers. */
struct error *sql_open(struct analysis *analysis, bool no_content, struct sql **ret);
void sql_close(struct sql *sql);
DEFINE_CLEANUP(sql_close, struct sql *)

/*
 * Run all statements of the text; each one's rows become a table "result". What SQLite finds wrong
 * with a statement is an ERROR_USAGE with its message.
 */
struct error *sql_run(struct sql *sql, const char *text, struct report *report);

/* Do the same, with another name of the table. */
struct error *sql_run_as(struct sql *sql, const char *text, const char *name,
			 struct report *report);

/*
 * Write all tables and views to the empty file, as an ordinary database. Afterwards, nothing can be
 * asked any more. After an error, the file is of no use.
 */
struct error *sql_write_file(struct sql *sql, const char *path);

/* True if the text ends with a complete statement. */
bool sql_is_complete(const char *text);

/* Report the tables and views with what they are; the columns of one, or of all if name is NULL. */
void sql_tables(struct report *report);
struct error *sql_schema(const char *name, struct report *report);

/* All tables as "name(column, ...): its rows", a line each, to be freed; NULL: memory is short. */
char *sql_signatures(void);

/* The names of all tables and views, and those of columns, of several tables perhaps; or NULL. */
const char *sql_table_name(size_t number);
const char *sql_column_name(size_t number);
