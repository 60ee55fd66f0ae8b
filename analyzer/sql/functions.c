/*
 * Functions beside SQLite's own: text(), words(), path(), name(), instance_of(), visited().
 */

#include "analyzer/analysis/chains.h"
#include "analyzer/base/text.h"
#include "analyzer/kinds/links.h"
#include "analyzer/kinds/signatures.h"
#include "analyzer/kinds/type_reason.h"
#include "analyzer/sql/parts.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_TEXT = 1 << 16, MOST_WORDS = 4096 };

static struct sql *owner_of(sqlite3_context *context)
{
	return sqlite3_user_data(context);
}

/* The bytes at an address up to the end of its allocation, if it is in one. */
static const uint8_t *bytes_at(struct sql *sql, uint64_t address, uint64_t *ret_size)
{
	const struct allocation_index *index = analysis_index(sql->analysis);
	allocation_id id = allocation_find(index, address);
	const uint8_t *bytes = image_bytes(analysis_image(sql->analysis), address, ret_size);

	if (bytes && id != NO_ALLOCATION) {
		uint64_t left = allocation_start(index, id) + allocation_size(index, id) - address;

		*ret_size = left < *ret_size ? left : *ret_size;
	}
	return bytes;
}

/* True if the first argument is an address and the stage could be built. */
static bool begin(sqlite3_context *context, sqlite3_value *value, enum stage stage)
{
	struct sql *sql = owner_of(context);
	struct error *error;

	if (sqlite3_value_numeric_type(value) != SQLITE_INTEGER)
		return false;
	error = analysis_need(sql->analysis, stage);
	if (error) {
		sql_fail(sql, error);
		sqlite3_result_error(context, "no answer", -1);
	}
	return !error;
}

void sql_result_escaped(sqlite3_context *context, const char *text)
{
	char *escaped = text ? text_as_is(text) : NULL;

	if (escaped)
		sqlite3_result_text(context, escaped, -1, free);
	else
		sqlite3_result_error_nomem(context);
}

static void text_function(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct sql *sql = owner_of(context);
	uint64_t size = 0;
	const uint8_t *bytes;
	_cleanup_(free) char *text = NULL;

	if (!begin(context, values[0], STAGE_HEAP))
		return;
	bytes = bytes_at(sql, (uint64_t)sqlite3_value_int64(values[0]), &size);
	if (!bytes)
		return;
	if (sql->no_content) {
		sql_result_text(context, report_left_out);
		return;
	}
	size = text_run((const char *)bytes, MIN(size, MOST_TEXT));
	text = strndup((const char *)bytes, size);
	if (text)
		sql_result_escaped(context, text);
	else
		sqlite3_result_error_nomem(context);
}

/* n words from an address on, in hexadecimal, with blanks between. */
static void words_function(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct sql *sql = owner_of(context);
	struct writer writer = { 0 };
	sqlite3_int64 wanted = sqlite3_value_int64(values[1]);
	uint64_t address = (uint64_t)sqlite3_value_int64(values[0]), word;

	if (!begin(context, values[0], STAGE_IMAGE))
		return;
	if (sql->no_content) {
		sql_result_text(context, report_left_out);
		return;
	}
	for (sqlite3_int64 i = 0; i < wanted && i < MOST_WORDS; i++) {
		const struct image *image = analysis_image(sql->analysis);

		if (!image_read_word(image, address + image_word_size(image) * (uint64_t)i, &word))
			break;
		if (i > 0)
			writer_put(&writer, ' ');
		writer_hexadecimal(&writer, word);
	}
	if (writer.failed)
		sqlite3_result_error_nomem(context);
	else if (writer.used)
		sqlite3_result_text64(context, writer.buffer, writer.used, SQLITE_TRANSIENT,
				      SQLITE_UTF8);
	writer_deinit(&writer);
}

/* A variable, or a place on a stack; NULL: it has no name. */
static const char *name_of(struct sql *sql, uint64_t address)
{
	struct debug *debug = analysis_debug(sql->analysis);
	const struct stack *stack = program_find_stack(analysis_program(sql->analysis), address);
	const char *name = debug_thread_local(debug, address);

	if (!name && stack && stack->thread != NO_THREAD)
		name = debug_stack_place(debug, stack->thread, address);
	return name ? name : debug_name(debug, address);
}

void sql_result_name(struct sql *sql, sqlite3_context *context, uint64_t address)
{
	struct error *error = analysis_need(sql->analysis, STAGE_DEBUG);
	const char *name = error ? NULL : name_of(sql, address);

	if (error) {
		sql_fail(sql, error);
		sqlite3_result_error(context, "no answer", -1);
	} else if (name) {
		sql_result_escaped(context, name);
	}
}

static void name_function(sqlite3_context *context, int count, sqlite3_value **values)
{
	if (sqlite3_value_numeric_type(values[0]) == SQLITE_INTEGER)
		sql_result_name(owner_of(context), context,
				(uint64_t)sqlite3_value_int64(values[0]));
}

/* Write the holder of a path's first allocation. */
static struct error *write_anchor(struct sql *sql, allocation_id id, struct writer *writer)
{
	struct found_anchors found;
	const struct anchor *anchor = found.list;
	const char *name;

	TRY(chains_find_anchors(sql->chains, id, ROOT_KINDS, &found));
	name = found.count && anchor->address ? name_of(sql, anchor->address) : NULL;
	if (name)
		writer_escaped(writer, name);
	else if (found.count && anchor->register_name)
		writer_text(writer, root_kind_name(anchor->kind));
	else if (found.count && anchor->address)
		writer_format(writer, writer_escaped, "0x%" PRIx64, anchor->address);
	else
		writer_text(writer, "root");
	return NULL;
}

/* " -> struct node": what a step of the way leads to. */
static void write_path_step(struct sql *sql, allocation_id id, struct writer *writer)
{
	const struct named_kinds *kinds = &sql->facts.kinds;

	writer_text(writer, " -> ");
	writer_text(writer, kinds->list.items[kinds->numbers.items[id]].name);
}

/* ".next (x7)": by which member of each, if that is known, the links of a chain lead on. */
static void write_path_links(struct sql *sql, const allocation_id *ids, size_t links,
			     struct writer *writer)
{
	_cleanup_(free) char *field = analysis_cost(sql->analysis, STAGE_TYPES).built
					      ? type_field(sql->analysis, ids[0], ids[1])
					      : NULL;

	if (field) {
		writer_text(writer, ".");
		writer_escaped(writer, field);
	}
	writer_format(writer, writer_text, " (x%zu)", links);
}

/*
 * "app.users['anna']", as the program reaches an object of a language's runtime; else
 * "shop.customers -> Customer -> %LongString", the shortest way from a root.
 */
static struct error *write_path(struct sql *sql, allocation_id id, struct writer *writer)
{
	_cleanup_(path_deinit) struct path path = { 0 };
	char text[512];

	TRY(analysis_need(sql->analysis, STAGE_OBJECT_PATHS));
	if (object_paths_tell(analysis_object_paths(sql->analysis), id, !sql->no_content, text,
			      sizeof(text))) {
		writer_text(writer, text);
		return NULL;
	}
	TRY(named_kinds_find(sql->analysis, &sql->facts.kinds));
	TRY(analysis_need(sql->analysis, STAGE_DEBUG));
	if (!sql->chains)
		TRY(chains_create(sql->analysis, &sql->chains));
	TRY(chains_find_whole(sql->chains, CHAIN_ROOTS, id, &path));
	if (path.count == 0)
		return NULL;
	TRY(write_anchor(sql, path.ids[0], writer));
	write_path_step(sql, path.ids[0], writer);
	for (size_t i = 1, links; i < path.count; i += links) {
		links = links_in_step(sql->analysis, analysis_patterns(sql->analysis),
				      analysis_typing(sql->analysis), path.ids + i - 1,
				      path.count - i + 1);
		write_path_step(sql, path.ids[i], writer);
		if (links > 1)
			write_path_links(sql, path.ids + i - 1, links, writer);
	}
	return NULL;
}

static void path_function(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct sql *sql = owner_of(context);
	struct writer writer = { 0 };
	const struct allocation_index *index;
	struct error *error;
	allocation_id id;

	if (!begin(context, values[0], STAGE_REACHABILITY))
		return;
	index = analysis_index(sql->analysis);
	id = allocation_find(index, (uint64_t)sqlite3_value_int64(values[0]));
	if (id == NO_ALLOCATION || !bitmap_get(allocation_used(index), id))
		return;
	error = write_path(sql, id, &writer);
	if (error) {
		sql_fail(sql, error);
		sqlite3_result_error(context, "no answer", -1);
	} else if (writer.failed) {
		sqlite3_result_error_nomem(context);
	} else if (writer.used) {
		sqlite3_result_text64(context, writer.buffer, writer.used, SQLITE_TRANSIENT,
				      SQLITE_UTF8);
	}
	writer_deinit(&writer);
}

static void free_filter(void *data)
{
	struct class_filter *filter = data;

	class_filter_deinit(filter);
	free(filter);
}

/* The filter of that class: SQLite keeps it as long as a statement names the same one. */
static struct error *find_filter(sqlite3_context *context, sqlite3_value *name,
				 struct class_filter **ret)
{
	const char *text = (const char *)sqlite3_value_text(name);
	struct class_filter *filter = sqlite3_get_auxdata(context, 1);
	struct error *error;

	if (!filter) {
		filter = calloc(1, sizeof(*filter));
		TRY_MEMORY(filter);
		error = class_filter_init(filter, owner_of(context)->analysis, text ? text : "");
		sqlite3_set_auxdata(context, 1, filter, free_filter);
		if (error)
			return error;
		filter = sqlite3_get_auxdata(context, 1);
		TRY_MEMORY(filter);
	}
	*ret = filter;
	return NULL;
}

static struct error *judge_class(sqlite3_context *context, sqlite3_value **values, bool *ret)
{
	struct analysis *analysis = owner_of(context)->analysis;
	sqlite3_int64 id = sqlite3_value_int64(values[0]);
	struct class_filter *filter;

	TRY(find_filter(context, values[1], &filter));
	*ret = false;
	if (id < 0 || (uint64_t)id >= allocation_count(analysis_index(analysis)) ||
	    !bitmap_get(allocation_used(analysis_index(analysis)), (size_t)id))
		return NULL;
	return class_filter_judge(filter, analysis_signature(analysis, (allocation_id)id), ret);
}

/* 1 if the allocation is of that class, or of one derived from it. */
static void instance_of_function(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct error *error;
	bool is_one = false;

	if (!begin(context, values[0], STAGE_CLASSES))
		return;
	error = judge_class(context, values, &is_one);
	if (!error) {
		sqlite3_result_int(context, is_one);
		return;
	}
	sql_fail(owner_of(context), error);
	sqlite3_result_error(context, "no answer", -1);
}

static void visited_function(sqlite3_context *context, int count, sqlite3_value **values)
{
	sql_result_number(context, owner_of(context)->visited);
}

static const struct {
	const char *name;
	int count;
	void (*call)(sqlite3_context *context, int count, sqlite3_value **values);
} functions[] = {
	{ "text", 1, text_function },
	{ "words", 2, words_function },
	{ "name", 1, name_function },
	{ "path", 1, path_function },
	{ "instance_of", 2, instance_of_function },
	{ "visited", 0, visited_function },
};

const char *sql_function_name(size_t number)
{
	return number < COUNT_OF(functions) ? functions[number].name : NULL;
}

struct error *sql_add_functions(struct sql *sql)
{
	for (size_t i = 0; i < COUNT_OF(functions); i++) {
		int status = sqlite3_create_function(
			sql->database, functions[i].name, functions[i].count,
			SQLITE_UTF8 | SQLITE_INNOCUOUS, sql, functions[i].call, NULL, NULL);

		if (status != SQLITE_OK)
			return sql_error(sql, status);
	}
	return NULL;
}
