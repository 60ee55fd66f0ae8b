#include "analyzer/sql/parts.h"

#include "analyzer/analysis/chains.h"
#include "analyzer/base/text.h"
#include "analyzer/sql/result.h"

#include <string.h>

enum { STEPS_BETWEEN_CHECKS = 20000 };

const struct sql_view sql_views[] = {
	{ "suspects",
	  "allocations without which at least a twentieth of the heap would be freed, where the way to more ends",
	  "WITH big AS MATERIALIZED (SELECT id, parent, retained, retained_count FROM dominator"
	  " WHERE retained >= (SELECT sum(bytes) / 20 FROM kind))"
	  " SELECT big.id, allocation.address, allocation.kind, allocation.size, big.retained,"
	  " big.retained_count FROM big CROSS JOIN allocation ON allocation.id = big.id"
	  " WHERE NOT EXISTS (SELECT 1 FROM big AS next WHERE next.parent = big.id"
	  " AND next.retained >= 0.8 * big.retained) ORDER BY big.retained DESC" },
	{ "fan_in", "allocations that many others refer to",
	  "SELECT counted.id, allocation.address, allocation.kind, allocation.size,"
	  " counted.referrers FROM (SELECT target AS id, count(DISTINCT source) AS referrers"
	  " FROM reference GROUP BY target HAVING count(*) > 1) AS counted"
	  " CROSS JOIN allocation ON allocation.id = counted.id ORDER BY counted.referrers DESC" },
	{ "object_reference",
	  "references from object to object, whatever bodies or nodes of containers are in between",
	  "SELECT coalesce(a.owner, a.id) AS source, b.id AS target, a.id AS by FROM reference AS r"
	  " CROSS JOIN allocation AS a ON a.id = r.source"
	  " CROSS JOIN allocation AS b ON b.id = r.target WHERE b.owner IS NULL"
	  " AND b.id IS NOT a.owner" },
	{ "duplicates", "bytes in copies of what is in the heap already, by kind",
	  "SELECT allocation.kind, allocation.size, count(*) AS copies, sum(allocation.size) AS bytes"
	  " FROM duplicate CROSS JOIN allocation ON allocation.id = duplicate.id"
	  " GROUP BY allocation.kind, allocation.size ORDER BY bytes DESC" },
	{ NULL, NULL, NULL },
};

const struct sql_table *sql_table_at(size_t number)
{
	static const struct sql_table *const tables[] = {
		&sql_allocation_table, &sql_free_table,	  &sql_dominator_table,
		&sql_reference_table,  &sql_member_table, &sql_object_table,
		&sql_item_table,
	};

	return number < COUNT_OF(tables) ? tables[number]
					 : sql_stored_table(number - COUNT_OF(tables));
}

/* True if `*` leaves out the column. */
static bool is_hidden(const struct sql_table *table, size_t column)
{
	const struct column_list *list = table->rows ? table->rows->shared : NULL;

	return list && list->columns[column].stages & list->hidden;
}

static const char *type_of(enum value_kind kind)
{
	switch (kind) {
	case VALUE_ADDRESS:
		return "ADDRESS_INTEGER";
	case VALUE_BYTES:
		return "BYTES_INTEGER";
	case VALUE_TEXT:
		return "TEXT";
	case VALUE_ANY:
		return "ANY";
	case VALUE_SECONDS:
	case VALUE_SHARE:
		return "REAL";
	default:
		return "INTEGER";
	}
}

/* Names of columns with _ for blanks. */
static void write_name(struct writer *writer, const char *name)
{
	for (; *name; name++)
		writer_put(writer, (char)(*name == ' ' ? '_' : *name));
}

char *sql_declare(const struct sql_table *table, bool is_in_file)
{
	const struct table *columns = sql_columns(table);
	struct writer writer = { 0 };

	writer_text(&writer, is_in_file ? "CREATE TABLE file." : "CREATE TABLE ");
	writer_text(&writer, columns->name);
	for (size_t i = 0; i < columns->column_count; i++) {
		const char *name = columns->columns[i].name;

		if (is_in_file && columns->columns[i].kind == VALUE_ANY)
			continue;
		writer_text(&writer, i ? ", \"" : "(\"");
		write_name(&writer, name);
		writer_text(&writer, "\" ");
		writer_text(&writer, type_of(columns->columns[i].kind));
		if (is_in_file)
			writer_text(&writer, strcmp(name, "id") == 0 ? " PRIMARY KEY" : "");
		else
			writer_text(&writer, is_hidden(table, i) ? " HIDDEN" : "");
	}
	writer_put(&writer, ')');
	writer_put(&writer, '\0');
	if (writer.failed) {
		writer_deinit(&writer);
		return NULL;
	}
	return writer.buffer;
}

int sql_fail(struct sql *sql, struct error *error)
{
	sql->error = error_first(take(sql->error), error);
	return SQLITE_ERROR;
}

static const char *table_name(const void *data, size_t number)
{
	return sql_table_name(number);
}

static const char *column_name(const void *data, size_t number)
{
	return sql_column_name(number);
}

static const char *function_name(const void *data, size_t number)
{
	return sql_function_name(number);
}

/* The word that SQLite's message complains of behind the prefix, without a table; or NULL. */
static const char *complained_word(const char *message, const char *prefix)
{
	const char *dot = strrchr(message, '.');

	if (strncmp(message, prefix, strlen(prefix)) != 0)
		return NULL;
	return dot ? dot + 1 : message + strlen(prefix);
}

/* The tables that have the column, or nothing. */
static void write_tables_with(struct writer *writer, const char *column)
{
	for (size_t i = 0; sql_table_at(i); i++) {
		const struct table *columns = sql_columns(sql_table_at(i));

		for (size_t j = 0; j < columns->column_count; j++) {
			if (strcmp(columns->columns[j].name, column) != 0)
				continue;
			writer_text(writer, writer->used ? ", " : "; it is a column of ");
			writer_text(writer, columns->name);
		}
	}
}

/* Suggest a name for the unknown word of a message. */
static void write_advice(struct writer *writer, const char *message)
{
	static const struct {
		const char *prefix;
		const char *(*known)(const void *data, size_t number);
	} kinds[] = {
		{ "no such table: ", table_name },
		{ "no such function: ", function_name },
		{ "no such column: ", column_name },
	};

	for (size_t i = 0; i < COUNT_OF(kinds); i++) {
		const char *word = complained_word(message, kinds[i].prefix), *nearest;

		nearest = word ? nearest_word(word, kinds[i].known, NULL) : NULL;
		if (nearest && strcmp(nearest, word) == 0) {
			write_tables_with(writer, word);
		} else if (nearest) {
			writer_text(writer, "; did you mean '");
			write_name(writer, nearest);
			writer_put(writer, '\'');
		}
	}
	writer_put(writer, '\0');
}

/* SQLite's message, and which table, column or function may be meant. */
static struct error *complain(const char *message)
{
	struct writer advice = { 0 };
	struct error *error;

	write_advice(&advice, message);
	error = advice.failed ? &error_no_memory
			      : error_create(ERROR_USAGE, "%s%s%s", message, advice.buffer,
					     strstr(advice.buffer, "did you mean") ? "?" : "");
	writer_deinit(&advice);
	return error;
}

struct error *sql_error(struct sql *sql, int status)
{
	if (sql->error)
		return take(sql->error);
	if (status == SQLITE_NOMEM || !sql->database)
		return &error_no_memory;
	if (status == SQLITE_INTERRUPT)
		return error_create(ERROR_INTERRUPTED, "interrupted");
	return complain(sqlite3_errmsg(sql->database));
}

bool sql_take_constraint(sqlite3_index_info *info, int number, int *count,
			 struct sql_constraint taken[MOST_CONSTRAINTS])
{
	int column = info->aConstraint[number].iColumn;
	unsigned char operator= info->aConstraint[number].op;

	if (!info->aConstraint[number].usable || *count == MOST_CONSTRAINTS)
		return false;
	if (operator!= SQLITE_INDEX_CONSTRAINT_EQ && operator!= SQLITE_INDEX_CONSTRAINT_GT &&
	    operator!= SQLITE_INDEX_CONSTRAINT_GE &&
	    operator!= SQLITE_INDEX_CONSTRAINT_LT &&
	    operator!= SQLITE_INDEX_CONSTRAINT_LE)
		return false;
	/* The rowid is the id. */
	taken[*count] = (struct sql_constraint){ column < 0 ? 0 : column, operator};
	info->aConstraintUsage[number].argvIndex = ++*count;
	return true;
}

int sql_keep_constraints(sqlite3_index_info *info, const struct sql_constraint *taken, int count)
{
	char *text = sqlite3_malloc(2 * MOST_CONSTRAINTS + 1);

	if (!text)
		return SQLITE_NOMEM;
	for (int i = 0; i < count; i++) {
		text[2 * i] = (char)('0' + taken[i].column);
		text[2 * i + 1] = (char)taken[i].operator;
	}
	text[2 * count] = '\0';
	info->idxNum |= (int)(info->colUsed & 0x0fffffff) << PLAN_BITS;
	info->idxStr = text;
	info->needToFreeIdxStr = 1;
	return SQLITE_OK;
}

int sql_connect(sqlite3 *database, void *data, int count, const char *const *words,
		sqlite3_vtab **ret, char **ret_error)
{
	const struct sql_module_data *module = data;
	struct sql_virtual *table;
	_cleanup_(free) char *declaration = sql_declare(module->table, false);
	int status = declaration ? sqlite3_declare_vtab(database, declaration) : SQLITE_NOMEM;

	if (status != SQLITE_OK)
		return status;
	sqlite3_vtab_config(database, SQLITE_VTAB_INNOCUOUS);
	table = calloc(1, sizeof(*table));
	if (!table)
		return SQLITE_NOMEM;
	table->sql = module->sql;
	table->table = module->table;
	*ret = &table->base;
	return SQLITE_OK;
}

int sql_disconnect(sqlite3_vtab *table)
{
	free(table);
	return SQLITE_OK;
}

static int check_interrupt(void *data)
{
	static const char task[] = "answering the query";
	struct sql *sql = data;
	struct progress *progress = analysis_progress(sql->analysis);
	struct error *error;

	/* A stage that was built meanwhile had its own. */
	if (progress->task != task)
		progress_begin(progress, task, 0);
	error = progress_check(progress, 0);

	if (error)
		sql_fail(sql, error);
	return error != NULL;
}

struct error *sql_execute(struct sql *sql, const char *text)
{
	int status = sqlite3_exec(sql->database, text, NULL, NULL, NULL);

	return status == SQLITE_OK ? NULL : sql_error(sql, status);
}

struct error *sql_add_views(struct sql *sql, const char *schema)
{
	for (size_t i = 0; sql_views[i].name; i++) {
		_cleanup_(free) char *text = format_text("CREATE VIEW %s%s AS %s", schema,
							 sql_views[i].name, sql_views[i].select);

		TRY_MEMORY(text);
		TRY(sql_execute(sql, text));
	}
	return NULL;
}

/* Declaring a table is nothing that result_authorize() allows, so all are there before. */
static struct error *connect_tables(struct sql *sql)
{
	for (size_t i = 0; sql_table_at(i); i++) {
		_cleanup_(free) char *text =
			format_text("SELECT 1 FROM %s WHERE 0", sql_columns(sql_table_at(i))->name);

		TRY_MEMORY(text);
		TRY(sql_execute(sql, text));
	}
	return NULL;
}

/* SQLite may use the rest of --max-memory; it sorts in memory only. */
static void limit_memory(struct sql *sql)
{
	enum { LEAST = 1 << 22 };
	const struct memory_account *account = analysis_account(sql->analysis);
	size_t used = atomic_load(&account->used);

	if (account->limit == 0)
		return;
	sqlite3_hard_heap_limit64(
		account->limit > used + LEAST ? (sqlite3_int64)(account->limit - used) : LEAST);
	sql->limited = true;
}

static struct error *set_up(struct sql *sql)
{
	int status = sqlite3_open_v2(":memory:", &sql->database,
				     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
					     SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW,
				     NULL);

	if (status != SQLITE_OK)
		return sql_error(sql, status);
	TRY(sql_execute(sql, "PRAGMA temp_store = MEMORY"));
	TRY(sql_add_functions(sql));
	for (size_t i = 0; sql_table_at(i); i++)
		TRY(sql_add_table(sql, sql_table_at(i)));
	TRY(connect_tables(sql));
	TRY(sql_add_views(sql, ""));
	sqlite3_db_config(sql->database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_limit(sql->database, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_set_authorizer(sql->database, result_authorize, NULL);
	sqlite3_progress_handler(sql->database, STEPS_BETWEEN_CHECKS, check_interrupt, sql);
	return NULL;
}

struct error *sql_open(struct analysis *analysis, bool no_content, struct sql **ret)
{
	_cleanup_(sql_close) struct sql *sql = calloc(1, sizeof(*sql));

	TRY_MEMORY(sql);
	sql->analysis = sql->facts.analysis = analysis;
	sql->no_content = sql->facts.no_content = no_content;
	limit_memory(sql);
	TRY(set_up(sql));
	*ret = take(sql);
	return NULL;
}

static void close_kept(void *kept)
{
	sql_close(kept);
}

struct error *sql_of(struct analysis *analysis, bool no_content, struct sql **ret)
{
	struct sql *sql = analysis_kept(analysis);

	if (!sql || sql->no_content != no_content) {
		TRY(sql_open(analysis, no_content, &sql));
		analysis_keep(analysis, sql, close_kept);
	}
	*ret = sql;
	return NULL;
}

void sql_close(struct sql *sql)
{
	if (!sql)
		return;
	sqlite3_close(sql->database);
	if (sql->limited)
		sqlite3_hard_heap_limit64(0);
	column_facts_deinit(&sql->facts);
	chains_destroy(sql->chains);
	for (size_t i = 0; i < COUNT_OF(sql->stored); i++)
		stored_rows_deinit(&sql->stored[i]);
	if (sql->error)
		error_destroy(sql->error);
	free(sql);
}

bool sql_is_complete(const char *text)
{
	return sqlite3_complete(text);
}

/* Stages that were built since may have changed the small tables, and chains. */
static void begin_question(struct sql *sql)
{
	sql->visited = 0;
	chains_destroy(take(sql->chains));
	for (size_t i = 0; i < COUNT_OF(sql->stored); i++)
		stored_rows_deinit(&sql->stored[i]);
	limit_memory(sql);
}

struct error *sql_run(struct sql *sql, const char *text, struct report *report)
{
	return sql_run_as(sql, text, result_name, report);
}

struct error *sql_run_as(struct sql *sql, const char *text, const char *name, struct report *report)
{
	begin_question(sql);
	while (*text) {
		sqlite3_stmt *statement = NULL;
		int status = sqlite3_prepare_v2(sql->database, text, -1, &statement, &text);
		struct error *error = NULL;

		if (status != SQLITE_OK)
			return sql_error(sql, status);
		if (statement)
			error = result_write(statement, name, report, &status);
		if (!error && status != SQLITE_OK)
			error = sql_error(sql, status);
		sqlite3_finalize(statement);
		if (error)
			return error;
	}
	return NULL;
}

const char *sql_table_name(size_t number)
{
	size_t i = 0;

	for (; sql_table_at(i); i++)
		if (i == number)
			return sql_columns(sql_table_at(i))->name;
	return number - i < COUNT_OF(sql_views) ? sql_views[number - i].name : NULL;
}

const char *sql_column_name(size_t number)
{
	for (size_t i = 0; sql_table_at(i); i++) {
		const struct table *columns = sql_columns(sql_table_at(i));

		if (number < columns->column_count)
			return columns->columns[number].name;
		number -= columns->column_count;
	}
	return NULL;
}

void sql_tables(struct report *report)
{
	static const struct table table = TABLE("sql table", NULL, { "name", VALUE_TEXT },
						{ "is", VALUE_TEXT }, { "rows are", VALUE_TEXT });

	report_begin_table(report, &table);
	for (size_t i = 0; sql_table_at(i); i++)
		report_row(report, sql_columns(sql_table_at(i))->name, "table",
			   sql_table_at(i)->summary);
	for (size_t i = 0; sql_views[i].name; i++)
		report_row(report, sql_views[i].name, "view", sql_views[i].summary);
	report_end_table(report);
}

struct error *sql_schema(const char *name, struct report *report)
{
	static const struct table table =
		TABLE("sql column", NULL, { "table", VALUE_TEXT }, { "column", VALUE_TEXT },
		      { "type", VALUE_TEXT }, { "hidden", VALUE_TEXT });
	bool found = false;

	report_begin_table(report, &table);
	for (size_t i = 0; sql_table_at(i); i++) {
		const struct sql_table *each = sql_table_at(i);
		const struct table *columns = sql_columns(each);

		if (name && strcmp(name, columns->name) != 0)
			continue;
		found = true;
		for (size_t j = 0; j < columns->column_count; j++) {
			struct writer writer = { 0 };

			write_name(&writer, columns->columns[j].name);
			writer_put(&writer, '\0');
			report_row(report, columns->name, (const char *)writer.buffer,
				   type_of(columns->columns[j].kind),
				   is_hidden(each, j) ? "hidden" : NULL);
			writer_deinit(&writer);
		}
	}
	report_end_table(report);
	return name && !found ? error_create(ERROR_USAGE, "there is no table '%s'", name) : NULL;
}

static void write_signature(struct writer *writer, const struct sql_table *table)
{
	const struct table *columns = sql_columns(table);

	writer_text(writer, columns->name);
	for (size_t i = 0; i < columns->column_count; i++) {
		writer_text(writer, i ? ", " : "(");
		write_name(writer, columns->columns[i].name);
	}
	writer_text(writer, "): ");
	writer_text(writer, table->summary);
	writer_put(writer, '\n');
}

char *sql_signatures(void)
{
	struct writer writer = { 0 };

	for (size_t i = 0; sql_table_at(i); i++)
		write_signature(&writer, sql_table_at(i));
	for (size_t i = 0; sql_views[i].name; i++) {
		writer_text(&writer, sql_views[i].name);
		writer_text(&writer, ": ");
		writer_text(&writer, sql_views[i].summary);
		writer_put(&writer, '\n');
	}
	writer_put(&writer, '\0');
	if (!writer.failed)
		return writer.buffer;
	writer_deinit(&writer);
	return NULL;
}
