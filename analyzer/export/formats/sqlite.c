/*
 * A database of SQLite: the tables and views of `sql` in a file, for the queries of docs/sql.md.
 */
#include "analyzer/export/export.h"
#include "analyzer/sql/sql.h"

static struct error *sqlite_save(struct analysis *analysis, bool no_content, const char *path)
{
	_cleanup_(sql_close) struct sql *sql = NULL;

	TRY(sql_open(analysis, no_content, &sql));
	return sql_write_file(sql, path);
}

const struct export_format export_format_sqlite = {
	.name = "sqlite",
	.summary =
		"a database of SQLite: all tables and views of 'sql', for sqlite3 and what reads it",
	.is_binary = true,
	.save = sqlite_save,
};
