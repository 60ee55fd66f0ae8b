/*
 * The module of SQLite that serves all tables, and what tables whose rows belong to allocations
 * share: these come in the order of ids, and conditions on the id narrow what is visited.
 */
#include "analyzer/sql/parts.h"

/*
 * Bounds of a column as SQL has it: [least, most] of numbers that are not negative. false: no
 * number that can be an id, an address or a size is.
 */
bool sql_narrow(unsigned char operator, sqlite3_int64 value, uint64_t *least, uint64_t *most)
{
	switch (operator) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		*least = *least > (uint64_t)value ? *least : (uint64_t)value;
		*most = *most < (uint64_t)value ? *most : (uint64_t)value;
		return true;
	case SQLITE_INDEX_CONSTRAINT_GT:
	case SQLITE_INDEX_CONSTRAINT_GE:
		*least = *least > (uint64_t)value ? *least : (uint64_t)value;
		return true;
	case SQLITE_INDEX_CONSTRAINT_LT:
	case SQLITE_INDEX_CONSTRAINT_LE:
		*most = *most < (uint64_t)value ? *most : (uint64_t)value;
		return true;
	default:
		return false;
	}
}

int sql_best_ids(sqlite3_vtab *base, sqlite3_index_info *info)
{
	struct sql_constraint taken[MOST_CONSTRAINTS];
	int count = 0;

	info->estimatedRows = 10000000;
	for (int i = 0; i < info->nConstraint; i++)
		if (info->aConstraint[i].iColumn == 0 &&
		    sql_take_constraint(info, i, &count, taken))
			info->estimatedRows = info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ
						      ? 10
						      : info->estimatedRows / 4 + 1;
	info->estimatedCost = (double)info->estimatedRows * 2;
	info->orderByConsumed =
		info->nOrderBy == 1 && !info->aOrderBy[0].desc && info->aOrderBy[0].iColumn == 0;
	return sql_keep_constraints(info, taken, count);
}

void sql_narrow_ids(struct sql_cursor *cursor, int count, const char *constraints,
		    sqlite3_value **values)
{
	for (int i = 0; i < count; i++) {
		uint64_t least = 0, most = INT64_MAX;

		/* Leave other comparisons to SQLite. */
		if (sqlite3_value_type(values[i]) != SQLITE_INTEGER ||
		    sqlite3_value_int64(values[i]) < 0 ||
		    !sql_narrow((unsigned char)constraints[2 * i + 1],
				sqlite3_value_int64(values[i]), &least, &most))
			continue;
		cursor->at = MAX(cursor->at, least);
		cursor->end = most < cursor->end ? most + 1 : cursor->end;
	}
}

struct error *sql_begin_ids(struct sql_cursor *cursor)
{
	cursor->end = allocation_count(analysis_index(cursor->sql->analysis));
	return NULL;
}

void sql_seek_used(struct sql_cursor *cursor)
{
	cursor->at =
		bitmap_next(allocation_used(analysis_index(cursor->sql->analysis)), cursor->at);
	cursor->id = cursor->at;
}

void sql_get_id(struct sql_cursor *cursor, sqlite3_context *context)
{
	sql_result_number(context, cursor->id);
}

static const struct sql_rows *rows_of(const struct sql_virtual *virtual)
{
	return virtual->table->rows ? virtual->table->rows : &sql_stored_rows;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **ret)
{
	const struct sql_virtual *virtual = (struct sql_virtual *)base;
	const struct sql_rows *rows = rows_of(virtual);
	struct sql_cursor *cursor = calloc(1, rows->cursor_size);

	if (!cursor)
		return SQLITE_NOMEM;
	cursor->sql = virtual->sql;
	cursor->table = virtual->table;
	cursor->rows = rows;
	column_row_init(&cursor->row, &cursor->sql->facts);
	if (cursor->rows->open)
		cursor->rows->open(cursor);
	*ret = &cursor->base;
	return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	struct sql_cursor *cursor = (struct sql_cursor *)base;

	if (cursor->rows->close)
		cursor->rows->close(cursor);
	free(cursor);
	return SQLITE_OK;
}

/* Tell progress now and then how far the cursor has come. */
static int glance(struct sql_cursor *cursor)
{
	enum { STEP = 1 << 16 };
	struct error *error;

	if (cursor->at - cursor->reported < STEP)
		return SQLITE_OK;
	cursor->reported = cursor->at;
	error = progress_glance(analysis_progress(cursor->sql->analysis));
	return error ? sql_fail(cursor->sql, error) : SQLITE_OK;
}

/* From the place of the cursor on, where there may be a row. */
static int find_row(struct sql_cursor *cursor)
{
	const struct sql_rows *rows = cursor->rows;
	int status = SQLITE_OK;

	for (; status == SQLITE_OK && cursor->at < cursor->end; cursor->at++) {
		cursor->id = cursor->at;
		if (rows->seek)
			rows->seek(cursor);
		if (cursor->at >= cursor->end || !rows->find)
			break;
		cursor->sql->visited++;
		if (rows->find(cursor))
			return cursor->sql->error ? SQLITE_ERROR : SQLITE_OK;
		status = glance(cursor);
	}
	return status;
}

static int filter(sqlite3_vtab_cursor *base, int plan, const char *constraints, int count,
		  sqlite3_value **values)
{
	struct sql_cursor *cursor = (struct sql_cursor *)base;
	const struct sql_rows *rows = cursor->rows;
	struct error *error;

	cursor->at = cursor->end = cursor->reported = 0;
	error = rows->begin(cursor, plan);
	if (!error && rows->shared)
		error = columns_need(&cursor->sql->facts, rows->shared,
				     (uint32_t)plan >> PLAN_BITS);
	if (error)
		return sql_fail(cursor->sql, error);
	if (rows->narrow)
		rows->narrow(cursor, count, constraints, values);
	return find_row(cursor);
}

static int next_row(sqlite3_vtab_cursor *base)
{
	struct sql_cursor *cursor = (struct sql_cursor *)base;

	if (cursor->rows->step && cursor->rows->step(cursor))
		return SQLITE_OK;
	cursor->at++;
	return find_row(cursor);
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
	const struct sql_cursor *cursor = (struct sql_cursor *)base;

	return cursor->at >= cursor->end;
}

static void result_shared(struct sql_cursor *cursor, sqlite3_context *context, int column)
{
	struct column_row *row = &cursor->row;
	struct value value;

	row->id = (allocation_id)cursor->id;
	value = cursor->rows->shared->columns[column].get(row);
	if (row->no_memory)
		sqlite3_result_error_nomem(context);
	else if (row->text_count)
		sqlite3_result_text(context, row->texts[--row->text_count], -1, free);
	else
		sql_result(context, value);
}

static int result_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
	struct sql_cursor *cursor = (struct sql_cursor *)base;
	const struct sql_rows *rows = cursor->rows;

	if (rows->shared)
		result_shared(cursor, context, column);
	else if (rows->getters)
		rows->getters[column](cursor, context);
	else
		rows->result(cursor, context, column);
	return SQLITE_OK;
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	const struct sql_cursor *cursor = (struct sql_cursor *)base;
	const struct sql_rows *rows = cursor->rows;

	*ret = rows->row_id ? rows->row_id(cursor) : (sqlite3_int64)cursor->id;
	return SQLITE_OK;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	return rows_of((struct sql_virtual *)base)->best(base, info);
}

struct error *sql_add_table(struct sql *sql, const struct sql_table *table)
{
	static const sqlite3_module module = {
		.xConnect = sql_connect,
		.xDisconnect = sql_disconnect,
		.xBestIndex = best_index,
		.xOpen = open_cursor,
		.xClose = close_cursor,
		.xFilter = filter,
		.xNext = next_row,
		.xEof = is_at_end,
		.xColumn = result_column,
		.xRowid = row_id,
	};
	struct sql_module_data *data = malloc(sizeof(*data));
	int status;

	TRY_MEMORY(data);
	*data = (struct sql_module_data){ sql, table };
	/* It frees the data also where it fails. */
	status = sqlite3_create_module_v2(sql->database, sql_columns(table)->name, &module, data,
					  free);
	return status == SQLITE_OK ? NULL : sql_error(sql, status);
}
