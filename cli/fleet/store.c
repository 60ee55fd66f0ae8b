#include "cli/fleet/store.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "cli/prompt/output_file.h"

#include <errno.h>
#include <string.h>
#include <time.h>

struct store {
	sqlite3 *database;
	char *path;
	bool within; /* a transaction */
	time_t begun;
};

/* "hcfl": a file of SQLite that says so is ours. */
#define APPLICATION	  "1751344748"
#define VERSION_OF_TABLES "1"

enum { BUSY_MILLISECONDS = 30000 };

static const char SCHEMA[] =
	"PRAGMA application_id = " APPLICATION ";"
	"PRAGMA user_version = " VERSION_OF_TABLES ";"
	"CREATE TABLE core (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE,"
	" size INTEGER, modified INTEGER, status INTEGER, error TEXT, incomplete INTEGER NOT NULL,"
	" seconds REAL, host TEXT, build TEXT, build_id TEXT, program TEXT, process INTEGER,"
	" time REAL, threads INTEGER, used INTEGER, used_bytes INTEGER, leaked INTEGER,"
	" leaked_bytes INTEGER, mapped INTEGER, resident INTEGER);"
	"CREATE TABLE tag (core INTEGER NOT NULL REFERENCES core ON DELETE CASCADE,"
	" name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (core, name)) WITHOUT ROWID;"
	"CREATE TABLE bill (core INTEGER NOT NULL REFERENCES core ON DELETE CASCADE,"
	" memory TEXT, use TEXT, count INTEGER, mapped INTEGER, resident INTEGER);"
	"CREATE TABLE leak (core INTEGER NOT NULL REFERENCES core ON DELETE CASCADE,"
	" fingerprint TEXT NOT NULL, kind TEXT, size INTEGER, roots INTEGER, allocations INTEGER,"
	" bytes INTEGER, address TEXT, allocated_by TEXT);"
	"CREATE TABLE kind (core INTEGER NOT NULL REFERENCES core ON DELETE CASCADE,"
	" kind TEXT NOT NULL, count INTEGER, bytes INTEGER, PRIMARY KEY (core, kind)) WITHOUT ROWID;"
	"CREATE TABLE finding (core INTEGER NOT NULL REFERENCES core ON DELETE CASCADE,"
	" incomplete INTEGER, message TEXT);"
	"CREATE INDEX bill_core ON bill (core);"
	"CREATE INDEX leak_core ON leak (core);"
	"CREATE INDEX leak_fingerprint ON leak (fingerprint);"
	"CREATE INDEX finding_core ON finding (core);";

/* A tag that the rows have themselves, by 'heapcore --tag'. */
#define TAG(name)                                                      \
	"(SELECT json_extract(value, '$." name "') FROM json_each(?2)" \
	" WHERE json_extract(value, '$.row') = 'facts')"

/*
 * ?1 is the core's id, ?2 all rows as an array of JSON. What a core's rows lack is null, and of a
 * kind that several rows name, the sum counts.
 */
static const char *const FILLS[] = {
	"UPDATE core SET (program, build_id, process, time, threads, used, used_bytes, leaked,"
	" leaked_bytes, mapped, resident) = (SELECT json_extract(value, '$.program'),"
	" json_extract(value, '$.build_id'), json_extract(value, '$.process'),"
	" ifnull(json_extract(value, '$.time'), modified / 1e9),"
	" json_extract(value, '$.threads'),"
	" json_extract(value, '$.used'), json_extract(value, '$.used_bytes'),"
	" json_extract(value, '$.leaked'), json_extract(value, '$.leaked_bytes'),"
	" json_extract(value, '$.mapped'), json_extract(value, '$.resident') FROM json_each(?2)"
	" WHERE json_extract(value, '$.row') = 'facts') WHERE id = ?1",
	"INSERT INTO bill SELECT ?1, json_extract(value, '$.memory'), json_extract(value, '$.use'),"
	" json_extract(value, '$.count'), json_extract(value, '$.mapped'),"
	" json_extract(value, '$.resident') FROM json_each(?2)"
	" WHERE json_extract(value, '$.row') = 'facts use'",
	"INSERT INTO leak SELECT ?1, json_extract(value, '$.fingerprint'),"
	" json_extract(value, '$.kind'), json_extract(value, '$.size'),"
	" json_extract(value, '$.roots'), json_extract(value, '$.allocations'),"
	" json_extract(value, '$.bytes'), json_extract(value, '$.address'),"
	" json_extract(value, '$.allocated_by') FROM json_each(?2)"
	" WHERE json_extract(value, '$.row') = 'facts leak'",
	"INSERT INTO kind SELECT ?1, json_extract(value, '$.kind'),"
	" sum(json_extract(value, '$.count')), sum(json_extract(value, '$.bytes'))"
	" FROM json_each(?2) WHERE json_extract(value, '$.row') = 'facts kind' GROUP BY 2",
	"INSERT INTO finding SELECT ?1, json_extract(value, '$.incomplete'),"
	" json_extract(value, '$.message') FROM json_each(?2)"
	" WHERE json_extract(value, '$.row') = 'finding'",
	"UPDATE core SET incomplete = EXISTS (SELECT 1 FROM finding WHERE core = ?1 AND incomplete),"
	" host = ifnull((SELECT value FROM tag WHERE core = ?1 AND name = 'host')," TAG(
		"host") "),"
			" build = coalesce((SELECT value FROM tag WHERE core = ?1 AND name = 'build')," TAG(
				"build") ", build_id)"
					 " WHERE id = ?1",
};

void fleet_core_deinit(struct fleet_core *core)
{
	list_for_each(tag, core->tags, core->tag_count) {
		free(tag->name);
		free(tag->value);
	}
	free(core->tags);
	free(core->path);
}

struct error *fleet_core_tag(struct fleet_core *core, const char *name, const char *value,
			     size_t size)
{
	struct tag tag = { strdup(name), strndup(value, size) };

	if (tag.name && tag.value && LIST_GROW(core->tags, core->tag_count)) {
		core->tags[core->tag_count++] = tag;
		return NULL;
	}
	free(tag.name);
	free(tag.value);
	return &error_no_memory;
}

static struct error *wrong(const struct store *store)
{
	bool is_other = sqlite3_errcode(store->database) == SQLITE_NOTADB;

	return error_create(is_other ? ERROR_USAGE : ERROR_SYSTEM, "%s: %s", store->path,
			    sqlite3_errmsg(store->database));
}

struct error *store_run(struct store *store, const char *text)
{
	return sqlite3_exec(store->database, text, NULL, NULL, NULL) == SQLITE_OK ? NULL
										  : wrong(store);
}

static void finalize(sqlite3_stmt *statement)
{
	sqlite3_finalize(statement);
}
DEFINE_CLEANUP(finalize, sqlite3_stmt *)

static struct error *prepare(struct store *store, const char *query, const char *const *values,
			     size_t count, sqlite3_stmt **ret)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;

	if (sqlite3_prepare_v2(store->database, query, -1, &statement, NULL) != SQLITE_OK)
		return wrong(store);
	for (size_t i = 0; i < count; i++)
		if (sqlite3_bind_text(statement, (int)i + 1, values[i], -1, SQLITE_STATIC) !=
		    SQLITE_OK)
			return wrong(store);
	*ret = take(statement);
	return NULL;
}

struct error *store_number(struct store *store, const char *query, const char *const *values,
			   size_t count, int64_t *ret)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;

	TRY(prepare(store, query, values, count, &statement));
	if (sqlite3_step(statement) != SQLITE_ROW)
		return wrong(store);
	*ret = sqlite3_column_int64(statement, 0);
	return NULL;
}

/* An empty file becomes ours; any other must be. */
static struct error *check_tables(struct store *store, enum store_access access)
{
	int64_t application = 0, version = 0, tables = 0;

	TRY(store_number(store, "PRAGMA application_id", NULL, 0, &application));
	TRY(store_number(store, "PRAGMA user_version", NULL, 0, &version));
	TRY(store_number(store, "SELECT count(*) FROM sqlite_master", NULL, 0, &tables));
	if (access == STORE_WRITE && !application && !tables)
		return store_run(store, SCHEMA);
	if (application != strtoll(APPLICATION, NULL, 10))
		return error_create(ERROR_USAGE, "%s was not made by 'heapcore fleet'",
				    store->path);
	if (version != strtoll(VERSION_OF_TABLES, NULL, 10))
		return error_create(ERROR_USAGE, "%s is of another version of heapcore",
				    store->path);
	return NULL;
}

static struct error *set_up(struct store *store, enum store_access access)
{
	struct error *error;

	sqlite3_busy_timeout(store->database, BUSY_MILLISECONDS);
	/* The file may be anybody's: what its tables say calls nothing. */
	sqlite3_db_config(store->database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(store->database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(store->database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(store->database, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
	sqlite3_db_config(store->database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	/* Tables of a question are nowhere but here. */
	TRY(store_run(store, "PRAGMA temp_store = MEMORY"));
	if (access == STORE_READ)
		return check_tables(store, access);
	TRY(store_run(store, "BEGIN IMMEDIATE"));
	error = check_tables(store, access);
	return error_first(error, store_run(store, error ? "ROLLBACK" : "COMMIT"));
}

struct error *store_open(const char *path, enum store_access access, struct store **ret)
{
	_cleanup_(store_close) struct store *store = calloc(1, sizeof(*store));
	int flags = access == STORE_READ ? SQLITE_OPEN_READONLY
					 : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
	struct error *error;

	if (!store || !(store->path = strdup(path)))
		return &error_no_memory;
	/* What is new is for its owner only, for kinds may tell secrets. */
	if (access == STORE_WRITE) {
		int fd = output_file_open(path, 0);

		if (fd < 0)
			return error_create(ERROR_USAGE, "%s: %s", path, strerror(errno));
		close(fd);
	}
	if (sqlite3_open_v2(path, &store->database, flags, NULL) != SQLITE_OK)
		return error_create(ERROR_USAGE, "%s: %s", path, sqlite3_errmsg(store->database));
	error = set_up(store, access);
	if (error)
		return error;
	*ret = take(store);
	return NULL;
}

void store_close(struct store *store)
{
	sqlite3_close(store->database);
	free(store->path);
	free(store);
}

struct error *store_has(struct store *store, const struct fleet_core *core, bool again, bool *ret)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;

	TRY(prepare(store,
		    "SELECT 1 FROM core WHERE path = ?1 AND size = ?2 AND modified = ?3"
		    " AND (error IS NULL OR NOT ?4)",
		    (const char *const[]){ core->path }, 1, &statement));
	sqlite3_bind_int64(statement, 2, (int64_t)core->size);
	sqlite3_bind_int64(statement, 3, core->modified);
	sqlite3_bind_int(statement, 4, again);
	*ret = sqlite3_step(statement) == SQLITE_ROW;
	return NULL;
}

static struct error *step(struct store *store, sqlite3_stmt *statement)
{
	return sqlite3_step(statement) == SQLITE_DONE ? NULL : wrong(store);
}

struct error *store_change(struct store *store, const char *query, const char *const *values,
			   size_t count)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;

	TRY(prepare(store, query, values, count, &statement));
	return step(store, statement);
}

static struct error *add_core(struct store *store, const struct fleet_core *core,
			      const struct fleet_result *result, const char *why)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	_cleanup_(free) char *escaped = why ? escape_text(why) : NULL;
	const char *const values[] = { core->path, escaped };

	TRY(store_change(store, "DELETE FROM core WHERE path = ?1", values, 1));
	TRY(prepare(store,
		    "INSERT INTO core (path, error, size, modified, status, seconds, incomplete)"
		    " VALUES (?1, replace(?2, ?1 || ': ', ''), ?3, ?4, ?5, ?6, 0)",
		    values, COUNT_OF(values), &statement));
	sqlite3_bind_int64(statement, 3, (int64_t)core->size);
	sqlite3_bind_int64(statement, 4, core->modified);
	sqlite3_bind_int(statement, 5, result->status);
	sqlite3_bind_double(statement, 6, result->seconds);
	return step(store, statement);
}

static struct error *add_tags(struct store *store, const struct fleet_core *core, int64_t id)
{
	list_for_each(tag, core->tags, core->tag_count) {
		_cleanup_(finalize) sqlite3_stmt *statement = NULL;
		const char *const values[] = { tag->name, tag->value };

		TRY(prepare(store,
			    "INSERT OR REPLACE INTO tag (name, value, core) VALUES (?1, ?2, ?3)",
			    values, COUNT_OF(values), &statement));
		sqlite3_bind_int64(statement, 3, id);
		TRY(step(store, statement));
	}
	return NULL;
}

/* Lines that are objects, as one array; NULL: memory is short. */
static char *array_of_lines(const struct fleet_result *result)
{
	char *array = malloc(result->rows_size + 3);
	size_t size = result->rows_size;

	if (!array)
		return NULL;
	while (size > 0 && result->rows[size - 1] == '\n')
		size--;
	array[0] = '[';
	memcpy(array + 1, result->rows, size);
	for (size_t i = 1; i <= size; i++)
		if (array[i] == '\n' || array[i] == '\0')
			array[i] = array[i] ? ',' : '?';
	array[size + 1] = ']';
	array[size + 2] = '\0';
	return array;
}

/* Nothing of rows that are wrong stays. */
static struct error *add_facts(struct store *store, int64_t id, const char *array)
{
	for (size_t i = 0; i < COUNT_OF(FILLS); i++) {
		_cleanup_(finalize) sqlite3_stmt *statement = NULL;

		TRY(prepare(store, FILLS[i], NULL, 0, &statement));
		sqlite3_bind_int64(statement, 1, id);
		sqlite3_bind_text(statement, 2, array, -1, SQLITE_STATIC);
		TRY(step(store, statement));
	}
	return NULL;
}

static struct error *add_all(struct store *store, const struct fleet_core *core,
			     const struct fleet_result *result, const char *array, const char *why)
{
	int64_t id;

	TRY(add_core(store, core, result, why));
	id = sqlite3_last_insert_rowid(store->database);
	TRY(add_tags(store, core, id));
	return add_facts(store, id, array);
}

/* Whether the rows are there to their end: only then is the analysis. */
static const char *what_is_wrong(struct store *store, const struct fleet_result *result,
				 const char *array)
{
	const char *const values[] = { array };
	int64_t rows = 0;
	struct error *error;

	if (result->error)
		return result->error;
	error = store_number(store,
			     "SELECT count(*) FROM json_each(?1)"
			     " WHERE json_extract(value, '$.row') IN ('facts', 'end')",
			     values, 1, &rows);
	if (error) {
		error_destroy(error);
		return "its rows are not those of 'facts'";
	}
	return rows == 2 ? NULL : "its rows are not complete";
}

struct error *store_add(struct store *store, const struct fleet_core *core,
			const struct fleet_result *result, bool *ret_fine)
{
	_cleanup_(free) char *array = array_of_lines(result);
	const char *why;
	struct error *error;

	if (!array)
		return &error_no_memory;
	if (!store->within) {
		TRY(store_run(store, "BEGIN IMMEDIATE"));
		store->within = true;
		store->begun = time(NULL);
	}
	why = what_is_wrong(store, result, array);
	TRY(store_run(store, "SAVEPOINT core"));
	error = add_all(store, core, result, why ? "[]" : array, why);
	if (error) {
		TRY(store_run(store, "ROLLBACK TO core"));
		why = "its rows are not those of 'facts'";
		error_destroy(error);
		TRY(add_all(store, core, result, "[]", why));
	}
	*ret_fine = !why;
	return store_run(store, "RELEASE core");
}

struct error *store_commit(struct store *store, bool now)
{
	if (!store->within || (!now && time(NULL) == store->begun))
		return NULL;
	store->within = false;
	return store_run(store, "COMMIT");
}

static struct value value_of(sqlite3_stmt *statement, int column, enum value_kind kind)
{
	if (sqlite3_column_type(statement, column) == SQLITE_NULL)
		return ABSENT;
	switch (kind) {
	case VALUE_TEXT:
		return value_text((const char *)sqlite3_column_text(statement, column));
	case VALUE_SHARE:
	case VALUE_SECONDS:
		return value_real(sqlite3_column_double(statement, column));
	default:
		return value_number((uint64_t)sqlite3_column_int64(statement, column));
	}
}

struct error *store_report(struct store *store, const char *query, const char *const *values,
			   size_t count, const struct table *table, struct report *report)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int status;

	TRY(prepare(store, query, values, count, &statement));
	report_begin_table(report, table);
	while ((status = sqlite3_step(statement)) == SQLITE_ROW) {
		for (size_t i = 0; i < table->column_count; i++)
			report_add(report, value_of(statement, (int)i, table->columns[i].kind));
		report_end_row(report);
	}
	report_end_table(report);
	return status == SQLITE_DONE ? NULL : wrong(store);
}
