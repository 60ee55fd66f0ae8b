/*
 * A core as an ordinary database in a file: the same tables and views, filled once.
 *
 * SQLite itself copies the rows from its virtual tables, in the order of their keys, and makes the
 * indices when all are there. What many allocations have in common is a row of `description`;
 * `allocation`, `dominator` and `reference` are views.
 */
#include "analyzer/base/text.h"
#include "analyzer/sql/parts.h"

#include <string.h>

#define DESCRIBED \
	"kind, known_by, class, pattern, type, sureness, signature, state, anchor, allocator, arena"

/*
 * Nobody else reads the file yet, and it is removed if it does not become complete. Indices are
 * sorted in files without a name, which is quicker than in memory.
 */
static const char *const SET_UP =
	"PRAGMA temp_store = FILE; PRAGMA file.page_size = 16384;"
	"PRAGMA file.journal_mode = OFF; PRAGMA file.synchronous = OFF;"
	"PRAGMA file.locking_mode = EXCLUSIVE; PRAGMA file.user_version = 1; BEGIN";

static const char *const ALLOCATIONS =
	"CREATE TABLE file.used_allocation (id INTEGER PRIMARY KEY, address ADDRESS_INTEGER,"
	" size BYTES_INTEGER, description INTEGER, parent INTEGER, retained BYTES_INTEGER,"
	" retained_count INTEGER, owner INTEGER);"
	"INSERT INTO file.used_allocation SELECT id, address, size, description_of(id), parent,"
	" retained, retained_count, owner_of(id) FROM main.dominator;"
	"CREATE TABLE file.description (number INTEGER PRIMARY KEY, kind TEXT, known_by TEXT,"
	" class TEXT, pattern TEXT, type TEXT, sureness TEXT, signature ADDRESS_INTEGER, state TEXT,"
	" anchor TEXT, allocator TEXT, arena INTEGER, is_leak_root INTEGER)";

static const char *const DESCRIPTION = "INSERT INTO file.description SELECT ?1, " DESCRIBED
				       ", is_leak_root FROM main.allocation WHERE id = ?2";

/* A row of the graph has up to 2^32 edges. */
static const char *const REFERENCES =
	"CREATE TABLE file.edge (source INTEGER, number INTEGER, target INTEGER,"
	" offset BYTES_INTEGER, target_offset BYTES_INTEGER, PRIMARY KEY (source, number))"
	" WITHOUT ROWID;"
	"INSERT INTO file.edge SELECT source, rowid & 0xffffffff, target, offset, target_offset"
	" FROM main.reference";

static const char *const VIEWS =
	"CREATE VIEW file.allocation AS SELECT id, address, size, " DESCRIBED
	", retained, is_leak_root, owner FROM used_allocation"
	" JOIN description ON description.number = used_allocation.description;"
	"CREATE VIEW file.dominator AS SELECT id, address, size, parent, retained, retained_count"
	" FROM used_allocation;"
	"CREATE VIEW file.reference AS SELECT source, target, offset,"
	" (SELECT address FROM used_allocation WHERE id = source) + offset AS address,"
	" target_offset FROM edge";

/* Samples are enough to tell large tables from small ones. */
static const char *const INDICES =
	"CREATE INDEX file.used_address ON used_allocation (address);"
	"CREATE INDEX file.free_address ON free (address);"
	"CREATE INDEX file.edge_target ON edge (target);"
	"COMMIT; PRAGMA analysis_limit = 1000; ANALYZE file; DETACH file";

static void finalize(sqlite3_stmt *statement)
{
	sqlite3_finalize(statement);
}
DEFINE_CLEANUP(finalize, sqlite3_stmt *)

static struct error *prepare(struct sql *sql, const char *text, sqlite3_stmt **ret)
{
	int status = sqlite3_prepare_v2(sql->database, text, -1, ret, NULL);

	return status == SQLITE_OK ? NULL : sql_error(sql, status);
}

static struct error *attach(struct sql *sql, const char *path)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int status;

	sqlite3_set_authorizer(sql->database, NULL, NULL);
	sqlite3_db_config(sql->database, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
	sqlite3_limit(sql->database, SQLITE_LIMIT_ATTACHED, 1);
	TRY(prepare(sql, "ATTACH ?1 AS file", &statement));
	sqlite3_bind_text(statement, 1, path, -1, SQLITE_STATIC);
	status = sqlite3_step(statement);
	return status == SQLITE_DONE ? NULL : sql_error(sql, status);
}

static struct error *copy_descriptions(struct sql *sql, const struct sql_descriptions *descriptions)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;

	TRY(prepare(sql, DESCRIPTION, &statement));
	for (size_t i = 0; i < descriptions->count; i++) {
		int status;

		sqlite3_bind_int64(statement, 1, (sqlite3_int64)i);
		sqlite3_bind_int64(statement, 2, descriptions->items[i].example);
		status = sqlite3_step(statement);
		if (status != SQLITE_DONE)
			return sql_error(sql, status);
		sqlite3_reset(statement);
	}
	return NULL;
}

static struct error *copy_allocations(struct sql *sql)
{
	static const enum stage needs[] = { STAGE_REACHABILITY, STAGE_SIGNATURES, STAGE_TYPES,
					    STAGE_LEAKED_TYPES, STAGE_LEAKS,	  STAGE_OWNERS };
	struct sql_descriptions descriptions = {
		.memory.account = analysis_account(sql->analysis),
		.slots.memory.account = analysis_account(sql->analysis),
	};
	struct error *error;

	for (size_t i = 0; i < COUNT_OF(needs); i++)
		TRY(analysis_need(sql->analysis, needs[i]));
	TRY(sql_kinds_find(sql));
	TRY(sql_add_descriptions(sql, &descriptions));
	error = sql_execute(sql, ALLOCATIONS);
	if (!error)
		error = copy_descriptions(sql, &descriptions);
	table_release(&descriptions);
	return error;
}

/*
 * True for tables that a file copies: not those that become views there, nor those that it lacks.
 */
static bool is_copied(const char *name)
{
	static const char *const others[] = { "allocation", "dominator", "reference", "member",
					      "item" };

	for (size_t i = 0; i < COUNT_OF(others); i++)
		if (strcmp(name, others[i]) == 0)
			return false;
	return true;
}

static void write_columns(struct writer *writer, const struct table *columns)
{
	const char *between = " \"";

	for (size_t i = 0; i < columns->column_count; i++) {
		if (columns->columns[i].kind == VALUE_ANY)
			continue;
		writer_text(writer, between);
		between = ", \"";
		for (const char *name = columns->columns[i].name; *name; name++)
			writer_put(writer, (char)(*name == ' ' ? '_' : *name));
		writer_put(writer, '"');
	}
}

/* All columns, with those that `*` leaves out, but for contents of memory. */
static struct error *copy_table(struct sql *sql, const struct sql_table *table)
{
	const struct table *columns = sql_columns(table);
	_cleanup_(free) char *declaration = sql_declare(table, true), *text = NULL;
	struct writer writer = { 0 };

	TRY_MEMORY(declaration);
	write_columns(&writer, columns);
	writer_put(&writer, '\0');
	if (!writer.failed)
		text = format_text("%s; INSERT INTO file.%s SELECT %s FROM main.%s", declaration,
				   columns->name, (const char *)writer.buffer, columns->name);
	writer_deinit(&writer);
	return text ? sql_execute(sql, text) : &error_no_memory;
}

/* Findings last: the other tables may add some. */
static struct error *copy_tables(struct sql *sql)
{
	const struct sql_table *findings = NULL;

	for (size_t i = 0; sql_table_at(i); i++) {
		const char *name = sql_columns(sql_table_at(i))->name;

		if (strcmp(name, "finding") == 0)
			findings = sql_table_at(i);
		else if (is_copied(name))
			TRY(copy_table(sql, sql_table_at(i)));
	}
	return copy_table(sql, findings);
}

struct error *sql_write_file(struct sql *sql, const char *path)
{
	TRY(attach(sql, path));
	TRY(sql_execute(sql, SET_UP));
	TRY(copy_allocations(sql));
	TRY(sql_execute(sql, REFERENCES));
	TRY(copy_tables(sql));
	TRY(sql_execute(sql, VIEWS));
	TRY(sql_add_views(sql, "file."));
	return sql_execute(sql, INDICES);
}
