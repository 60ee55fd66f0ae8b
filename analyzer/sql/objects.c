/*
 * The table of the objects of languages' runtimes, one by one. What blocks each is made of is found
 * for all together, when it is first asked for.
 */
#include "analyzer/sql/parts.h"

enum {
	COLUMN_ID,
	COLUMN_ADDRESS,
	COLUMN_CLASS,
	COLUMN_RUNTIME,
	COLUMN_BYTES,
	COLUMN_WITH_BLOCKS,
	COLUMN_STATE,
	COLUMN_KEPT,
};

const struct sql_table sql_object_table = {
	"objects of languages' runtimes, with the blocks that they are made of; bytes are the object's own",
	TABLE("object", NULL, { "id", VALUE_NUMBER }, { "address", VALUE_ADDRESS },
	      { "class", VALUE_TEXT }, { "runtime", VALUE_TEXT }, { "bytes", VALUE_BYTES },
	      { "with_blocks", VALUE_BYTES }, { "state", VALUE_TEXT }, { "kept", VALUE_TEXT }),
	0,
};

struct cursor {
	struct sql_cursor base;
	size_t at, end; /* ids */
	kind_key key;
	size_t hint; /* of the index */
};

static kind_key key_of_id(const void *data, allocation_id id)
{
	return kind_make(BY_SIZE, (uint64_t)id + 1);
}

/* A group for each object. */
static struct error *find_blocks(struct sql *sql)
{
	const struct allocation_index *index = analysis_index(sql->analysis);
	_cleanup_(object_census_deinit) struct object_census census = { 0 };
	struct object_census_input input = {
		.analysis = sql->analysis,
		.members = allocation_used(index),
		.key_of = key_of_id,
	};

	TRY(object_census_take(&input, &census));
	sql->object_blocks.memory.account = analysis_account(sql->analysis);
	TRY(array_resize(&sql->object_blocks, allocation_count(index)));
	array_for_each(group, &census.groups)
		sql->object_blocks.items[kind_value(group->key) - 1] = group->block_bytes;
	return NULL;
}

static struct error *need(struct sql *sql, int columns)
{
	TRY(object_finder_begin(sql->analysis, &sql->objects));
	if (columns & 1 << COLUMN_STATE)
		TRY(analysis_need(sql->analysis, STAGE_REACHABILITY));
	if (columns & 1 << COLUMN_WITH_BLOCKS && !sql->object_blocks.count)
		TRY(find_blocks(sql));
	return NULL;
}

static int find_row(struct cursor *cursor)
{
	struct sql *sql = cursor->base.sql;
	const struct bitmap *used = allocation_used(analysis_index(sql->analysis));
	int status = SQLITE_OK;

	for (; status == SQLITE_OK && cursor->at < cursor->end; cursor->at++) {
		cursor->at = bitmap_next(used, cursor->at);
		if (cursor->at >= cursor->end)
			break;
		sql->visited++;
		cursor->key = object_class_key(&sql->objects, (allocation_id)cursor->at);
		if (cursor->key != KIND_UNKNOWN)
			break;
		status = sql_glance(&cursor->base, cursor->at);
	}
	return status;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **ret)
{
	return sql_open_cursor(table, sizeof(struct cursor), ret);
}

static int filter(sqlite3_vtab_cursor *base, int plan, const char *constraints, int count,
		  sqlite3_value **values)
{
	struct cursor *cursor = (struct cursor *)base;
	struct sql *sql = cursor->base.sql;
	struct error *error = need(sql, plan);

	if (error)
		return sql_fail(sql, error);
	cursor->at = 0;
	cursor->end = allocation_count(analysis_index(sql->analysis));
	cursor->base.reported = 0;
	sql_narrow_ids(count, constraints, values, &cursor->at, &cursor->end);
	return find_row(cursor);
}

static int next_row(sqlite3_vtab_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	cursor->at++;
	return find_row(cursor);
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
	const struct cursor *cursor = (struct cursor *)base;

	return cursor->at >= cursor->end;
}

/* Objects without a class of their own are of a runtime that is known by patterns. */
static const char *runtime_name(const struct runtimes *runtimes, allocation_id id)
{
	const struct object_space *space = runtimes_space_of(runtimes, id);

	if (space)
		return space->runtime->name;
	for (size_t i = 0; i < runtime_count(runtimes); i++)
		if (!runtime_at(runtimes, i)->find_objects)
			return runtime_at(runtimes, i)->name;
	return NULL;
}

static int result_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
	struct cursor *cursor = (struct cursor *)base;
	const struct sql *sql = cursor->base.sql;
	const struct runtimes *runtimes = analysis_runtimes(sql->analysis);
	allocation_id id = (allocation_id)cursor->at;
	struct memory_range range =
		allocation_range_near(analysis_index(sql->analysis), id, &cursor->hint);
	_cleanup_(free) char *name = NULL;
	char text[256];

	switch (column) {
	case COLUMN_ID:
		sql_result_number(context, id);
		break;
	case COLUMN_ADDRESS:
		sql_result_number(context, range.start);
		break;
	case COLUMN_CLASS:
		name = kind_text(sql->analysis, cursor->key);
		sql_result_escaped(context, name);
		break;
	case COLUMN_RUNTIME:
		sql_result_text(context, runtime_name(runtimes, id));
		break;
	case COLUMN_BYTES:
		sql_result_number(context, range.end - range.start);
		break;
	case COLUMN_WITH_BLOCKS:
		sql_result_number(context, range.end - range.start + sql->object_blocks.items[id]);
		break;
	case COLUMN_STATE:
		sql_result_text(context, sql_state(sql->analysis, id));
		break;
	default:
		if (runtimes_tell(runtimes, id, text, sizeof(text)))
			sql_result_escaped(context, text);
	}
	return SQLITE_OK;
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	*ret = (sqlite3_int64)((struct cursor *)base)->at;
	return SQLITE_OK;
}

static const sqlite3_module module = SQL_MODULE(sql_best_ids, sql_close_cursor);

struct error *sql_add_object_table(struct sql *sql)
{
	return sql_add_module(sql, &module, &sql_object_table, 0);
}
