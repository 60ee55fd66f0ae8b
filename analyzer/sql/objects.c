/*
 * The table of the objects of languages' runtimes, one by one. What blocks each is made of is found
 * for all together, when it is first asked for.
 */
#include "analyzer/sql/parts.h"

struct cursor {
	struct sql_cursor base;
	kind_key key;
	allocation_id read; /* that the value is of, or NO_ALLOCATION */
	struct view view;
	struct object_value value;
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

	if (sql->object_blocks.count)
		return NULL;
	TRY(object_census_take(&input, &census));
	sql->object_blocks.memory.account = analysis_account(sql->analysis);
	TRY(array_resize(&sql->object_blocks, allocation_count(index)));
	array_for_each(group, &census.groups)
		sql->object_blocks.items[kind_value(group->key) - 1] = group->block_bytes;
	return NULL;
}

static struct error *begin(struct sql_cursor *cursor, int plan)
{
	((struct cursor *)cursor)->read = NO_ALLOCATION;
	((struct cursor *)cursor)->view = (struct view){ analysis_image(cursor->sql->analysis) };
	TRY(analysis_need(cursor->sql->analysis, STAGE_CLASSES));
	return sql_begin_ids(cursor);
}

static bool find(struct sql_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	cursor->key = object_class_key(base->sql->analysis, (allocation_id)base->id);
	return cursor->key != KIND_UNKNOWN;
}

static void get_class(struct sql_cursor *cursor, sqlite3_context *context)
{
	_cleanup_(free) char *name =
		kind_text(cursor->sql->analysis, ((struct cursor *)cursor)->key);

	sql_result_escaped(context, name);
}

static void get_runtime(struct sql_cursor *cursor, sqlite3_context *context)
{
	sql_result_text(context, runtimes_space_of(analysis_runtimes(cursor->sql->analysis),
						   (allocation_id)cursor->id)
					 ->runtime->name);
}

static void get_with_blocks(struct sql_cursor *cursor, sqlite3_context *context)
{
	uint64_t size =
		allocation_size(analysis_index(cursor->sql->analysis), (allocation_id)cursor->id);

	sql_result_number(context, size + cursor->sql->object_blocks.items[cursor->id]);
}

static void get_kept(struct sql_cursor *cursor, sqlite3_context *context)
{
	char text[256];

	if (runtimes_tell(analysis_runtimes(cursor->sql->analysis), (allocation_id)cursor->id, text,
			  sizeof(text)))
		sql_result_escaped(context, text);
}

/* The object's value; NULL: it has none. */
static const struct object_value *read_value(struct sql_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;
	allocation_id id = (allocation_id)base->id;
	struct object_space *space = runtimes_space_of(analysis_runtimes(base->sql->analysis), id);
	struct object_link link = { .target = space ? object_target(space, id) : 0 };

	if (!space)
		return NULL;
	if (cursor->read != id) {
		cursor->read = id;
		if (!object_value_read(space, &cursor->view, &link, &cursor->value))
			cursor->value = (struct object_value){ .kind = OBJECT_SAYS_NOTHING };
	}
	return &cursor->value;
}

void sql_result_value(const struct sql *sql, sqlite3_context *context,
		      const struct object_value *value)
{
	if (value->kind == OBJECT_SAYS_NOTHING)
		return;
	if (sql->no_content)
		sql_result_text(context, report_left_out);
	else if (value->kind == OBJECT_IS_INTEGER)
		sqlite3_result_int64(context, value->integer);
	else if (value->kind == OBJECT_IS_REAL)
		sqlite3_result_double(context, value->real);
	else
		sql_result_escaped(context, value->text);
}

void sql_result_length(sqlite3_context *context, const struct object_value *value)
{
	if (value->has_length)
		sql_result_number(context, value->length);
}

static void get_value(struct sql_cursor *cursor, sqlite3_context *context)
{
	const struct object_value *value = read_value(cursor);

	if (value)
		sql_result_value(cursor->sql, context, value);
}

static void get_length(struct sql_cursor *cursor, sqlite3_context *context)
{
	const struct object_value *value = read_value(cursor);

	if (value)
		sql_result_length(context, value);
}

#define COLUMNS(X)                                                     \
	X("id", VALUE_NUMBER, sql_get_id)                              \
	X("address", VALUE_ADDRESS, sql_get_address)                   \
	X("class", VALUE_TEXT, get_class)                              \
	X("runtime", VALUE_TEXT, get_runtime)                          \
	X("bytes", VALUE_BYTES, sql_get_size)                          \
	X("with_blocks", VALUE_BYTES, get_with_blocks, 0, find_blocks) \
	X("state", VALUE_TEXT, sql_get_state, 1 << STAGE_REACHABILITY) \
	X("kept", VALUE_TEXT, get_kept)                                \
	X("value", VALUE_ANY, get_value, 1 << STAGE_OBJECT_PATHS)      \
	X("length", VALUE_ANY, get_length, 1 << STAGE_OBJECT_PATHS)

static const struct sql_rows rows = {
	.cursor_size = sizeof(struct cursor),
	.columns = (const struct sql_column[]){ COLUMNS(AS_GETTER) },
	.best = sql_best_ids,
	.begin = begin,
	.narrow = sql_narrow_ids,
	.seek = sql_seek_used,
	.find = find,
};

const struct sql_table sql_object_table = {
	"objects of languages' runtimes, with the blocks that they are made of; bytes are the object's own",
	TABLE("object", NULL, COLUMNS(AS_COLUMN)),
	.rows = &rows,
};
