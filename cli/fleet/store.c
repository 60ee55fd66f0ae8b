#include "cli/fleet/store.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "analyzer/sql/result.h"
#include "cli/prompt/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* "hcfl": a file of SQLite that says so is ours. */
#define APPLICATION	  "1751344748"
#define VERSION_OF_TABLES "4"

enum { BUSY_MILLISECONDS = 30000 };

/* Locks of cores are on bytes of the file that lie behind its end, and SQLite's. */
#define FIRST_CLAIM (INT64_C(1) << 62)

/* Columns that tables of former versions lack. */
#define FROM_VERSION_3 \
	"ALTER TABLE core ADD COLUMN uptime REAL;PRAGMA user_version = " VERSION_OF_TABLES ";"
#define FROM_VERSION_2 "ALTER TABLE kind ADD COLUMN allocated_by TEXT;" FROM_VERSION_3
#define FROM_VERSION_1                                                                                    \
	"CREATE TABLE holder (core INTEGER NOT NULL REFERENCES core ON DELETE CASCADE,"                   \
	" holder TEXT NOT NULL, count INTEGER, bytes INTEGER, PRIMARY KEY (core, holder)) WITHOUT ROWID;" \
	"ALTER TABLE core ADD COLUMN origin TEXT;"                                                        \
	"ALTER TABLE core ADD COLUMN machine TEXT;"                                                       \
	"ALTER TABLE core ADD COLUMN identity TEXT;"                                                      \
	"ALTER TABLE core ADD COLUMN version TEXT;"                                                       \
	"ALTER TABLE core ADD COLUMN signal INTEGER;"                                                     \
	"ALTER TABLE core ADD COLUMN place TEXT;"                                                         \
	"ALTER TABLE core ADD COLUMN reason TEXT;" FROM_VERSION_2

static const char *const migrations[] = { NULL, FROM_VERSION_1, FROM_VERSION_2, FROM_VERSION_3 };

static const char SCHEMA[] =
	"PRAGMA application_id = " APPLICATION ";"
	/* A number is never used again: what deletes a core may leave its rows in the other tables.
	 */
	"CREATE TABLE core (id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE,"
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
	"CREATE INDEX finding_core ON finding (core);" FROM_VERSION_1;

/* The beginning of a row's line, exactly as heapcore writes it. */
#define ROW(name) "{\"row\":\"" name "\","
#define KEY(name) "json_extract(?2, '$." name "')"

/*
 * The statements for each kind of row: ?1 is the core's id, ?2 the row. Missing keys become null;
 * if several rows name one kind, their counts add up.
 */
static const struct filling {
	const char *beginning, *query;
} fillings[] = {
	{ ROW("facts"),
	  "UPDATE core SET program = " KEY("program") ", build_id = " KEY("build_id") ", process = " KEY("process") ", time = ifnull(" KEY("time") ", modified / 1e9), threads = " KEY("threads") ", used = " KEY("used") ", used_bytes = " KEY("used_bytes") ", leaked = " KEY("leaked") ", leaked_bytes = " KEY("leaked_bytes") ", mapped = " KEY(
		  "mapped") ", resident = " KEY("resident") ", host = " KEY("host") ", build = " KEY("build") ", signal = " KEY("signal") ", place = " KEY("in") ", reason = " KEY("reason") ", uptime = " KEY("uptime") " WHERE id = ?1" },
	{ ROW("facts use"), "INSERT INTO bill VALUES (?1, " KEY("memory") ", " KEY("use") ", " KEY(
				    "count") ", " KEY("mapped") ", " KEY("resident") ")" },
	{ ROW("facts leak"),
	  "INSERT INTO leak VALUES (?1, " KEY("fingerprint") ", " KEY("kind") ", " KEY("size") ", " KEY(
		  "roots") ", " KEY("allocations") ", " KEY("bytes") ", " KEY("address") ", " KEY("allocated_by") ")" },
	{ ROW("facts kind"),
	  "INSERT INTO kind VALUES (?1, " KEY("kind") ", " KEY("count") ", " KEY("bytes") ", " KEY(
		  "allocated_by") ")"
				  " ON CONFLICT DO UPDATE SET count = count + excluded.count, bytes = bytes + excluded.bytes" },
	{ ROW("facts holder"), "INSERT OR IGNORE INTO holder VALUES (?1, " KEY("holder") ", " KEY(
				       "count") ", " KEY("bytes") ")" },
	{ ROW("facts core"),
	  "UPDATE core SET origin = " KEY("path") ", machine = " KEY("machine") ", identity = " KEY("identity") ", version = " KEY(
		  "version") ", status = " KEY("status") ", error = " KEY("error") ", time = coalesce(" KEY("time") ", time, modified / 1e9) WHERE id = ?1" },
	/* Its other keys are tags. */
	{ ROW("facts core"),
	  "INSERT OR IGNORE INTO tag SELECT ?1, key, value FROM json_each(?2) WHERE value IS NOT NULL"
	  " AND key NOT IN ('row', 'path', 'name', 'file_size', 'time', 'time_of', 'machine',"
	  " 'identity', 'status', 'error', 'version')" },
	{ ROW("finding"),
	  "INSERT INTO finding VALUES (?1, " KEY("incomplete") ", " KEY("message") ")" },
};

/* Tags override values of the rows. */
static const char CONCLUSION[] =
	"UPDATE core SET incomplete = EXISTS (SELECT 1 FROM finding WHERE core = ?1 AND incomplete),"
	" host = ifnull((SELECT value FROM tag WHERE core = ?1 AND name = 'host'), host), uptime ="
	" ifnull((SELECT nullif(CAST(value AS REAL), 0) FROM tag WHERE core = ?1 AND name = 'uptime'), uptime), build ="
	" coalesce((SELECT value FROM tag WHERE core = ?1 AND name = 'build'), build, build_id)"
	" WHERE id = ?1";

struct store {
	sqlite3 *database;
	char *path;
	int file; /* for locks; open as long as the database, whose locks end with any of its files
		   */
	sqlite3_stmt *fillings[COUNT_OF(fillings)]; /* once they are needed */
	bool limited;				    /* SQLite's memory */
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
	int code = sqlite3_errcode(store->database);
	bool is_other = code == SQLITE_NOTADB;

	if (code == SQLITE_INTERRUPT)
		return error_create(ERROR_INTERRUPTED, "interrupted");
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

struct error *store_text(struct store *store, const char *query, const char *const *values,
			 size_t count, char **ret)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	const char *text = NULL;
	int status;

	TRY(prepare(store, query, values, count, &statement));
	status = sqlite3_step(statement);
	if (status == SQLITE_ROW)
		text = (const char *)sqlite3_column_text(statement, 0);
	else if (status != SQLITE_DONE)
		return wrong(store);
	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? &error_no_memory : NULL;
}

static bool is_older(int64_t version)
{
	return version >= 1 && version < (int64_t)COUNT_OF(migrations);
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
	if (is_older(version) && access == STORE_WRITE)
		return store_run(store, migrations[version]);
	if (is_older(version) && access == STORE_READ_ONLY)
		return error_create(
			ERROR_USAGE,
			"%s is of an older heapcore: 'heapcore fleet report %s' renews it",
			store->path, store->path);
	if (version != (int64_t)COUNT_OF(migrations) && !is_older(version))
		return error_create(ERROR_USAGE, "%s is of a newer heapcore", store->path);
	return NULL;
}

static void is_missing(sqlite3_context *context, int count, sqlite3_value **values)
{
	const char *path = (const char *)sqlite3_value_text(values[0]);

	sqlite3_result_int(context, !path || access(path, F_OK) < 0);
}

static struct error *set_up(struct store *store, enum store_access access)
{
	struct error *error;

	sqlite3_busy_timeout(store->database, BUSY_MILLISECONDS);
	if (access == STORE_WRITE)
		sqlite3_create_function(store->database, "is_missing", 1,
					SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL, is_missing, NULL,
					NULL);
	/* The file may be anybody's: what its tables say calls nothing. */
	sqlite3_db_config(store->database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(store->database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(store->database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(store->database, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
	sqlite3_db_config(store->database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	/* Tables of a question are nowhere but here. */
	TRY(store_run(store, "PRAGMA temp_store = MEMORY"));
	if (access != STORE_WRITE)
		return check_tables(store, access);
	TRY(store_begin(store));
	error = check_tables(store, access);
	return error_first(error, store_run(store, error ? "ROLLBACK" : "COMMIT"));
}

/* Reading, too, takes tables of this version. */
static struct error *renew(struct store *store)
{
	_cleanup_(store_close) struct store *writer = NULL;
	int64_t version = 0;

	TRY(store_number(store, "PRAGMA user_version", NULL, 0, &version));
	return is_older(version) ? store_open(store->path, STORE_WRITE, &writer) : NULL;
}

bool store_is_at(const char *path)
{
	/* The header of SQLite's files: its name, how they are written and read, and whose they
	 * are. */
	enum { SIZE = 72, WRITTEN_AT = 18, READ_AT = 19, APPLICATION_AT = 68, PLAIN = 1 };
	static const char NAME[] = "SQLite format 3";
	_cleanup_(close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	unsigned char header[SIZE];
	uint32_t application;

	if (fd < 0 || pread(fd, header, SIZE, 0) != SIZE || memcmp(header, NAME, sizeof(NAME)) != 0)
		return false;
	memcpy(&application, header + APPLICATION_AT, sizeof(application));
	return header[WRITTEN_AT] == PLAIN && header[READ_AT] == PLAIN &&
	       be32toh(application) == strtoul(APPLICATION, NULL, 10);
}

struct error *store_open(const char *path, enum store_access access, struct store **ret)
{
	_cleanup_(store_close) struct store *store = calloc(1, sizeof(*store));
	int flags = access == STORE_WRITE ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
					  : SQLITE_OPEN_READONLY;
	struct error *error;

	TRY_MEMORY(store);
	store->file = -1;
	/* To read a file with a log of what will be written, SQLite makes files beside it. */
	if (access == STORE_READ_ONLY && !store_is_at(path))
		return error_create(ERROR_USAGE, "%s was not made by 'heapcore fleet'", path);
	store->path = strdup(path);
	TRY_MEMORY(store->path);
	/* Create the file for its owner only, because kinds may reveal secrets. */
	if (access == STORE_WRITE) {
		store->file = output_file_open(path, 0);
		if (store->file < 0)
			return error_create(ERROR_USAGE, "%s: %s", path, strerror(errno));
	}
	if (sqlite3_open_v2(path, &store->database, flags, NULL) != SQLITE_OK)
		return error_create(ERROR_USAGE, "%s: %s", path, sqlite3_errmsg(store->database));
	error = set_up(store, access);
	if (!error && access == STORE_READ)
		error = renew(store);
	if (error)
		return error;
	*ret = take(store);
	return NULL;
}

void store_close(struct store *store)
{
	for (size_t i = 0; i < COUNT_OF(fillings); i++)
		sqlite3_finalize(store->fillings[i]);
	sqlite3_close(store->database);
	if (store->limited)
		sqlite3_hard_heap_limit64(0);
	if (store->file >= 0)
		close(store->file);
	free(store->path);
	free(store);
}

static bool lock(const struct store *store, const char *path, short type)
{
	struct flock lock = {
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = FIRST_CLAIM + (off_t)(hash_text(0, path) % FIRST_CLAIM),
		.l_len = 1,
	};

	/* A file system without locks denies nobody. */
	return fcntl(store->file, F_OFD_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES);
}

bool store_claim(struct store *store, const char *path)
{
	return lock(store, path, F_WRLCK);
}

void store_release(struct store *store, const char *path)
{
	lock(store, path, F_UNLCK);
}

struct error *store_has(struct store *store, const struct fleet_core *core,
			const struct fleet_anew *anew, bool *ret)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;

	TRY(prepare(store,
		    "SELECT 1 FROM core WHERE path = ?1 AND size = ?2 AND modified = ?3"
		    " AND (error IS NULL OR NOT ?4) AND (version = ?5 OR ?5 IS NULL)",
		    (const char *const[]){ core->path }, 1, &statement));
	sqlite3_bind_int64(statement, 2, (int64_t)core->size);
	sqlite3_bind_int64(statement, 3, core->modified);
	sqlite3_bind_int(statement, 4, anew->failed);
	sqlite3_bind_text(statement, 5, anew->except, -1, SQLITE_STATIC);
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

static bool is_row(const char *line, size_t size, const char *beginning)
{
	size_t least = strlen(beginning);

	return size > least && memcmp(line, beginning, least) == 0 && line[size - 1] == '}';
}

static struct error *no_facts(void)
{
	return error_create(ERROR_BAD_DUMP, "its rows are not those of 'facts'");
}

static struct error *not_complete(void)
{
	return error_create(ERROR_BAD_DUMP, "its rows are not complete");
}

static struct error *fill(struct store *store, size_t number, int64_t id, const char *line,
			  size_t size)
{
	sqlite3_stmt **statement = &store->fillings[number];

	if (!*statement)
		TRY(prepare(store, fillings[number].query, NULL, 0, statement));
	sqlite3_reset(*statement);
	sqlite3_bind_int64(*statement, 1, id);
	sqlite3_bind_text(*statement, 2, line, (int)size, SQLITE_STATIC);
	switch (sqlite3_step(*statement)) {
	case SQLITE_DONE:
		return NULL;
	case SQLITE_ERROR: /* of functions of JSON */
	case SQLITE_CONSTRAINT:
		return no_facts();
	default:
		return wrong(store);
	}
}

static struct error *add_row(struct store *store, int64_t id, const char *line, size_t size)
{
	for (size_t i = 0; i < COUNT_OF(fillings); i++)
		if (is_row(line, size, fillings[i].beginning))
			TRY(fill(store, i, id, line, size));
	return NULL;
}

/* Their last row says why there are no others. */
static struct error *has_failed(struct store *store, int64_t id, bool *ret)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;

	TRY(prepare(store, "SELECT error IS NOT NULL FROM core WHERE id = ?1", NULL, 0,
		    &statement));
	sqlite3_bind_int64(statement, 1, id);
	if (sqlite3_step(statement) != SQLITE_ROW)
		return wrong(store);
	*ret = sqlite3_column_int(statement, 0);
	return NULL;
}

/* Only where the rows are there to their end, the analysis is. */
static struct error *add_rows(struct store *store, int64_t id, const struct fleet_result *result)
{
	const char *line = result->rows, *end = line + result->rows_size;
	size_t facts = 0, ends = 0;
	bool failed = false;

	for (size_t size; line < end; line += size + 1) {
		const char *line_end = memchr(line, '\n', (size_t)(end - line));

		size = (size_t)((line_end ? line_end : end) - line);
		if (size > 0 && !is_row(line, size, "{\"row\":\""))
			return line_end ? no_facts() : not_complete();
		facts += is_row(line, size, ROW("facts"));
		ends += is_row(line, size, ROW("end"));
		TRY(add_row(store, id, line, size));
	}
	TRY(has_failed(store, id, &failed));
	return failed || (facts == 1 && ends == 1) ? NULL : not_complete();
}

/* why: there are no rows, or none to rely on. */
static struct error *add_all(struct store *store, const struct fleet_core *core,
			     const struct fleet_result *result, const char *why)
{
	_cleanup_(finalize) sqlite3_stmt *conclusion = NULL;
	int64_t id;

	TRY(add_core(store, core, result, why));
	id = sqlite3_last_insert_rowid(store->database);
	TRY(add_tags(store, core, id));
	if (!why)
		TRY(add_rows(store, id, result));
	TRY(prepare(store, CONCLUSION, NULL, 0, &conclusion));
	sqlite3_bind_int64(conclusion, 1, id);
	return step(store, conclusion);
}

/* Nothing of rows that are wrong stays, but that they are. */
static struct error *add_failure(struct store *store, const struct fleet_core *core,
				 const struct fleet_result *result, struct error *why)
{
	_cleanup_(error_destroy) struct error *cause = why;

	if (error_code(cause) != ERROR_BAD_DUMP)
		return take(cause);
	TRY(store_run(store, "ROLLBACK TO core"));
	return add_all(store, core, result, error_message(cause));
}

struct error *store_add(struct store *store, const struct fleet_core *core,
			const struct fleet_result *result, bool *ret_fine)
{
	const char *const values[] = { core->path };
	struct error *error;
	int64_t fine = 0;

	TRY(store_run(store, "SAVEPOINT core"));
	error = add_all(store, core, result, result->error);
	if (error)
		TRY(add_failure(store, core, result, error));
	TRY(store_number(store, "SELECT error IS NULL FROM core WHERE path = ?1", values, 1,
			 &fine));
	*ret_fine = fine;
	return store_run(store, "RELEASE core");
}

struct error *store_begin(struct store *store)
{
	return store_run(store, "BEGIN IMMEDIATE");
}

struct error *store_commit(struct store *store)
{
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

struct error *store_lines(struct store *store, const char *query, const char *const *values,
			  size_t count, FILE *out)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int status;

	TRY(prepare(store, query, values, count, &statement));
	while ((status = sqlite3_step(statement)) == SQLITE_ROW)
		fprintf(out, "%s\n", sqlite3_column_text(statement, 0));
	return status == SQLITE_DONE ? NULL : wrong(store);
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

static int check_interrupt(void *progress)
{
	return atomic_load(&((struct progress *)progress)->interrupted);
}

void store_guard(struct store *store, struct progress *progress, size_t memory)
{
	enum { STEPS_BETWEEN_CHECKS = 10000 };

	sqlite3_progress_handler(store->database, STEPS_BETWEEN_CHECKS, check_interrupt, progress);
	if (memory == 0 || sqlite3_hard_heap_limit64(-1) != 0)
		return;
	sqlite3_hard_heap_limit64((sqlite3_int64)memory);
	store->limited = true;
}

struct error *store_ask(struct store *store, const char *text, struct report *report)
{
	sqlite3_limit(store->database, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_set_authorizer(store->database, result_authorize, NULL);
	while (*text) {
		_cleanup_(finalize) sqlite3_stmt *statement = NULL;
		int status = sqlite3_prepare_v2(store->database, text, -1, &statement, &text);

		if (status == SQLITE_OK && statement)
			TRY(result_write(statement, result_name, report, &status));
		if (status == SQLITE_INTERRUPT)
			return wrong(store);
		if (status == SQLITE_NOMEM)
			return &error_no_memory;
		if (status != SQLITE_OK)
			return error_create(ERROR_USAGE, "%s", sqlite3_errmsg(store->database));
	}
	return NULL;
}

char *store_signatures(const char *further)
{
	static const char QUERY[] =
		"SELECT group_concat(line, char(10)) FROM (SELECT t.name || '(' || group_concat(c.name, ', ')"
		" || ')' AS line FROM (SELECT name FROM main.sqlite_master WHERE type = 'table' AND name"
		" NOT LIKE 'sqlite%' UNION ALL SELECT name FROM temp.sqlite_master WHERE type = 'view') t,"
		" pragma_table_info(t.name) c GROUP BY t.name)";
	_cleanup_(store_close) struct store *store = calloc(1, sizeof(*store));
	_cleanup_(error_destroy) struct error *error = NULL;
	char *lines = NULL;

	if (!store || sqlite3_open(":memory:", &store->database) != SQLITE_OK)
		return NULL;
	store->file = -1;
	error = store_run(store, SCHEMA);
	if (!error)
		error = store_run(store, further);
	if (!error)
		error = store_text(store, QUERY, NULL, 0, &lines);
	return lines;
}
