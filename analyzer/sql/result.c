#include "analyzer/sql/result.h"

#include "analyzer/base/text.h"

#include <math.h>
#include <string.h>

const char result_name[] = "result";

/* An address is shown as one only where a column itself is asked for. */
static enum value_kind kind_of_column(sqlite3_stmt *statement, int column)
{
	const char *type = sqlite3_column_decltype(statement, column);

	if (type && strcmp(type, "ADDRESS_INTEGER") == 0)
		return VALUE_ADDRESS;
	return VALUE_ANY;
}

/* The names of a result's columns. */
struct result {
	struct table table;
	char *names[MAXIMUM_COLUMNS]; /* owned */
};

static void result_deinit(struct result *result)
{
	for (size_t i = 0; i < COUNT_OF(result->names); i++)
		free(result->names[i]);
}
DEFINE_DEINIT(result_deinit, struct result)

static bool is_taken(const struct result *result, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(result->names[i], name) == 0)
			return true;
	return false;
}

/* A key of JSON is there once: of two columns of one name, the second ends with _2. */
static char *name_column(const struct result *result, size_t column, const char *name)
{
	char *unique = strdup(name);

	for (size_t i = 2; unique && is_taken(result, column, unique); i++) {
		free(unique);
		unique = format_text("%s_%zu", name, i);
	}
	return unique;
}

static struct error *describe(sqlite3_stmt *statement, const char *name, struct result *ret)
{
	int count = sqlite3_column_count(statement);

	if (count > MAXIMUM_COLUMNS)
		return error_create(ERROR_USAGE, "a result has at most %d columns, not %d",
				    MAXIMUM_COLUMNS, count);
	ret->table = (struct table){ .name = name, .column_count = (size_t)count };
	for (int i = 0; i < count; i++) {
		ret->names[i] = name_column(ret, (size_t)i, sqlite3_column_name(statement, i));
		TRY_MEMORY(ret->names[i]);
		ret->table.columns[i] =
			(struct column){ ret->names[i], kind_of_column(statement, i), false };
	}
	return NULL;
}

static struct value value_of(sqlite3_stmt *statement, int column, enum value_kind kind)
{
	switch (sqlite3_column_type(statement, column)) {
	case SQLITE_NULL:
		return ABSENT;
	case SQLITE_INTEGER:
		return value_number((uint64_t)sqlite3_column_int64(statement, column));
	case SQLITE_FLOAT:
		/* JSON has no infinity. */
		return kind == VALUE_ADDRESS || !isfinite(sqlite3_column_double(statement, column))
			       ? ABSENT
			       : value_real(sqlite3_column_double(statement, column));
	default:
		return kind == VALUE_ADDRESS
			       ? ABSENT
			       : value_text((const char *)sqlite3_column_text(statement, column));
	}
}

struct error *result_write(sqlite3_stmt *statement, const char *name, struct report *report,
			   int *ret_status)
{
	_cleanup_(result_deinit) struct result result = { 0 };
	const struct table *table = &result.table;
	int status;

	TRY(describe(statement, name, &result));
	status = sqlite3_step(statement);
	*ret_status = status;
	if (status != SQLITE_ROW && status != SQLITE_DONE)
		return NULL;
	report_begin_table(report, table);
	for (; status == SQLITE_ROW && !report_broken(report); status = sqlite3_step(statement)) {
		for (size_t i = 0; i < table->column_count; i++)
			report_add(report, value_of(statement, (int)i, table->columns[i].kind));
		report_end_row(report);
	}
	report_end_table(report);
	*ret_status = status == SQLITE_ROW || status == SQLITE_DONE ? SQLITE_OK : status;
	return NULL;
}

int result_authorize(void *data, int action, const char *first, const char *second,
		     const char *database, const char *inside)
{
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_FUNCTION:
		return second && sqlite3_stricmp(second, "load_extension") == 0 ? SQLITE_DENY
										: SQLITE_OK;
	default:
		return SQLITE_DENY;
	}
}
