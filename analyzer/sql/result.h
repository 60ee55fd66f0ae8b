/*
 * Answers of SQLite as rows, whichever database was asked: a core or the file of a fleet.
 */
#pragma once

#include "analyzer/report/report.h"

#include <sqlite3.h>

extern const char result_name[]; /* "result" */

/*
 * Write the rows of the statement as a table of that name. A mistake that only running shows leaves
 * no table. *ret_status is SQLITE_OK, or what SQLite says is wrong.
 */
struct error *result_write(sqlite3_stmt *statement, const char *name, struct report *report,
			   int *ret_status);

/* Allows questions only: nothing is written, attached or loaded, and no setting changed. */
int result_authorize(void *data, int action, const char *first, const char *second,
		     const char *database, const char *inside);
