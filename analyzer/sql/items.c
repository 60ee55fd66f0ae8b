/*
 * The table of what objects of languages have, by name, key or number: attributes, entries, items.
 * A row is a link of the runtime (object_links.h); what stands in between, such as the dict of
 * attributes or the body of a list, has no row. The rows of an object are made when the cursor
 * comes to it, at most MOST_ITEMS; values are read when they are asked for.
 */
#include "analyzer/sql/parts.h"

#include <string.h>

enum { ITEM_BITS = 20, MOST_ITEMS = 1 << ITEM_BITS, NAME_SIZE = 512, MOST_COMPARED = 64 };

struct item {
	struct object_link link;
	uint32_t name; /* place in the texts */
	allocation_id target;
	uint64_t place; /* of the link, before references were followed */
};

struct cursor {
	struct sql_cursor base;
	size_t row;
	size_t read; /* the row that the value is of, or SIZE_MAX */
	struct view view;
	struct object_space *space; /* of the object */
	ARRAY(struct item) items;
	ARRAY(char) texts;
	struct object_value value;
	struct object_path path;
	char text[NAME_SIZE];
	struct error *error;
};

/* Go on behind references, which a language does not tell from what they lead to. */
static void follow_references(struct cursor *cursor, struct item *item)
{
	enum { MOST_REFERENCES = 4 };
	const struct runtime *runtime = cursor->space->runtime;
	uint64_t target;

	for (int i = 0; i < MOST_REFERENCES && runtime->links->referent; i++) {
		target = runtime->links->referent(cursor->space, &cursor->view, &item->link);
		if (!target)
			return;
		item->link = (struct object_link){ .target = target };
		item->target = object_find(cursor->space, target);
	}
}

/* A step without what separates it from the one before. */
static const char *without_separator(const char *step)
{
	static const char *const separators[] = { "->", "::", "." };

	for (size_t i = 0; i < COUNT_OF(separators); i++)
		if (strncmp(step, separators[i], strlen(separators[i])) == 0)
			return step + strlen(separators[i]);
	return step;
}

static void keep(struct cursor *cursor, const struct object_link *link, allocation_id target)
{
	const char *name = without_separator(cursor->text);
	struct item item = { *link, (uint32_t)cursor->texts.count, target, link->place };

	for (size_t i = 0; i <= strlen(name) && !cursor->error; i++)
		cursor->error = array_append(&cursor->texts, name[i]);
	/* It may live no longer than the visit. */
	item.link.name = NULL;
	follow_references(cursor, &item);
	if (!cursor->error)
		cursor->error = array_append(&cursor->items, item);
}

/* Words of an object are visited on their own and as what the language says of them. */
static bool is_known(const struct cursor *cursor, const struct object_link *link)
{
	size_t last = cursor->items.count;

	for (size_t i = 0; link->place && i < last && i < MOST_COMPARED; i++)
		if (cursor->items.items[last - 1 - i].place == link->place)
			return true;
	return false;
}

/* The way by what the language does not speak of. */
struct way {
	struct cursor *cursor;
	unsigned int state; /* of the path */
	bool is_behind;
	size_t depth;
};

static bool visit(void *data, const struct object_link *link);

static void visit_behind(struct cursor *cursor, struct way *way, const struct object_link *link)
{
	enum { DEEPEST = 4 };
	allocation_id id = object_find(cursor->space, link->target), before = cursor->path.id;
	struct way next = { cursor, cursor->path.state, true, way->depth + 1 };
	uint64_t source = cursor->path.source;

	if (id == NO_ALLOCATION || way->depth >= DEEPEST)
		return;
	cursor->path.id = id;
	cursor->path.source = link->target;
	cursor->error =
		error_first(cursor->error, object_visit_items(cursor->space, id, visit, &next));
	cursor->path.id = before;
	cursor->path.source = source;
}

static bool visit(void *data, const struct object_link *link)
{
	struct way *way = data;
	struct cursor *cursor = way->cursor;
	enum object_item item = cursor->space->runtime->links->steps[link->kind].item;
	allocation_id target = object_find(cursor->space, link->target);

	if (item == OBJECT_NO_ITEM || (item == OBJECT_KEY && way->is_behind) ||
	    is_known(cursor, link) ||
	    (target == NO_ALLOCATION &&
	     !object_value_read(cursor->space, &cursor->view, link, &cursor->value)))
		return false;
	cursor->path.used = cursor->path.state_used = 0;
	cursor->path.state = way->state;
	cursor->path.target = link->target;
	cursor->text[0] = '\0';
	if (!object_tell_step(&cursor->path, link))
		return false;
	if (item == OBJECT_ITEMS_BEHIND)
		visit_behind(cursor, way, link);
	else
		keep(cursor, link, target);
	return cursor->error || cursor->items.count >= MOST_ITEMS;
}

static bool find(struct sql_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;
	allocation_id id = (allocation_id)base->id;
	struct way way = { cursor, 0, false, 0 };

	cursor->row = cursor->items.count = cursor->texts.count = 0;
	cursor->read = SIZE_MAX;
	cursor->space = runtimes_space_of(analysis_runtimes(base->sql->analysis), id);
	if (!cursor->space || !cursor->space->runtime->links)
		return false;
	cursor->path = (struct object_path){
		.text = cursor->text,
		.size = sizeof(cursor->text),
		.space = cursor->space,
		.view = cursor->view,
		.with_content = !base->sql->no_content,
		.id = id,
		.source = object_target(cursor->space, id),
	};
	cursor->error = object_visit_items(cursor->space, id, visit, &way);
	if (!cursor->error)
		return cursor->items.count;
	sql_fail(base->sql, take(cursor->error));
	return true;
}

static bool step(struct sql_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	return ++cursor->row < cursor->items.count;
}

static void open_items(struct sql_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	arrays_use(analysis_account(base->sql->analysis), &cursor->items, &cursor->texts);
}

static void close_items(struct sql_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	arrays_release(&cursor->items, &cursor->texts);
}

static struct error *begin(struct sql_cursor *base, int plan)
{
	TRY(analysis_need(base->sql->analysis, STAGE_OBJECT_PATHS));
	((struct cursor *)base)->view = (struct view){ analysis_image(base->sql->analysis) };
	return sql_begin_ids(base);
}

static const struct item *item_at(const struct sql_cursor *base)
{
	const struct cursor *cursor = (const struct cursor *)base;

	return &cursor->items.items[cursor->row];
}

static const struct object_value *read_value(struct sql_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	if (cursor->read != cursor->row) {
		cursor->read = cursor->row;
		if (!object_value_read(cursor->space, &cursor->view, &item_at(base)->link,
				       &cursor->value))
			cursor->value = (struct object_value){ .kind = OBJECT_SAYS_NOTHING };
	}
	return &cursor->value;
}

static void get_name(struct sql_cursor *base, sqlite3_context *context)
{
	const char *name = &((struct cursor *)base)->texts.items[item_at(base)->name];

	if (*name)
		sql_result_escaped(context, name);
}

static void get_target(struct sql_cursor *base, sqlite3_context *context)
{
	if (item_at(base)->target != NO_ALLOCATION)
		sql_result_number(context, item_at(base)->target);
}

static void get_class(struct sql_cursor *base, sqlite3_context *context)
{
	allocation_id target = item_at(base)->target;
	const char *name = target == NO_ALLOCATION
				   ? read_value(base)->class_name
				   : object_class_name_at(((struct cursor *)base)->space, target);

	if (name)
		sql_result_escaped(context, name);
}

static void get_value(struct sql_cursor *base, sqlite3_context *context)
{
	struct value value = value_of_object(read_value(base), base->sql->no_content);

	if (value.text)
		sql_result_escaped(context, value.text);
	else
		sql_result(context, value);
}

static void get_length(struct sql_cursor *base, sqlite3_context *context)
{
	const struct object_value *value = read_value(base);

	sql_result(context, VALUE_IF(value->has_length, value->length));
}

static sqlite3_int64 row_id(const struct sql_cursor *base)
{
	return (sqlite3_int64)(base->at << ITEM_BITS | ((const struct cursor *)base)->row);
}

#define COLUMNS(X)                            \
	X("id", VALUE_NUMBER, sql_get_id)     \
	X("name", VALUE_TEXT, get_name)       \
	X("class", VALUE_TEXT, get_class)     \
	X("value", VALUE_ANY, get_value)      \
	X("length", VALUE_NUMBER, get_length) \
	X("target", VALUE_NUMBER, get_target)

static const struct sql_rows rows = {
	.cursor_size = sizeof(struct cursor),
	.getters = (sql_getter *const[]){ COLUMNS(AS_GETTER) },
	.best = sql_best_ids,
	.open = open_items,
	.close = close_items,
	.begin = begin,
	.narrow = sql_narrow_ids,
	.seek = sql_seek_used,
	.find = find,
	.step = step,
	.row_id = row_id,
};

const struct sql_table sql_item_table = {
	"what objects of languages have by name, key or number; target is the id of the object there",
	TABLE("item", NULL, COLUMNS(AS_COLUMN)),
	.rows = &rows,
};
