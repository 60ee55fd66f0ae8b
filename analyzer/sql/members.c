/*
 * The table of members: what is within each allocation whose type is known, by the debug
 * information. A row is a member that has none itself, an element of an array, a text, or a string
 * or container of a library, before what it is made of.
 *
 * The rows of an allocation are made when the cursor comes to it, at most MOST_MEMBERS; values are
 * read when they are asked for.
 */
#include "analyzer/base/cleanup.h"
#include "analyzer/classify/type_names.h"
#include "analyzer/kinds/library_values.h"
#include "analyzer/sql/parts.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_MEMBERS = 4096, DEEPEST = 10, PATH_SIZE = 512, MOST_CHARACTERS = 4096 };

struct member {
	uint64_t offset, size;
	type_number type;
	uint32_t path; /* place in the texts */
	uint8_t bit_size, bit_offset;
};

struct cursor {
	struct sql_cursor base;
	size_t row;	/* of the allocation's members */
	uint64_t start; /* the allocation's address */
	ARRAY(struct member) members;
	ARRAY(char) texts;
	/* While members are found. */
	const struct type_table *types;
	uint64_t size; /* of the allocation */
	bool has_tail; /* the last array is as long as there is room */
	char path[PATH_SIZE];
	struct error *error;
};

static bool is_full(const struct cursor *cursor)
{
	return cursor->error || cursor->members.count >= MOST_MEMBERS;
}

static void keep(struct cursor *cursor, struct member member, size_t length)
{
	if (is_full(cursor) || member.offset > cursor->size ||
	    member.size > cursor->size - member.offset)
		return;
	member.path = (uint32_t)cursor->texts.count;
	for (size_t i = 0; i <= length && !cursor->error; i++)
		cursor->error = array_append(&cursor->texts, i < length ? cursor->path[i] : '\0');
	if (!cursor->error)
		cursor->error = array_append(&cursor->members, member);
}

static void find_members(struct cursor *cursor, type_number number, uint64_t offset, size_t length,
			 size_t depth);

/* An array of one element may stand for more. */
static bool has_no_bounds(const struct cursor *cursor, const struct data_type *type)
{
	return type->count == 0 || (type->count == 1 && cursor->has_tail);
}

static uint64_t element_count(const struct cursor *cursor, const struct data_type *type,
			      uint64_t size, uint64_t offset)
{
	uint64_t room = (cursor->size - offset) / size;

	if (has_no_bounds(cursor, type))
		return room;
	return type->count < room ? type->count : room;
}

/* The path so far has that length. */
static void find_elements(struct cursor *cursor, const struct data_type *type, uint64_t offset,
			  size_t length, size_t depth)
{
	uint64_t size = type_get(cursor->types, type->target)->size;
	uint64_t count =
		size && offset <= cursor->size ? element_count(cursor, type, size, offset) : 0;

	for (uint64_t i = 0; i < count && !is_full(cursor); i++) {
		int written =
			snprintf(cursor->path + length, PATH_SIZE - length, "[%" PRIu64 "]", i);

		if (written > 0 && (size_t)written < PATH_SIZE - length)
			find_members(cursor, type->target, offset + i * size,
				     length + (size_t)written, depth + 1);
	}
}

/* The length of the path with the name behind it; a base class has none. */
static size_t add_name(struct cursor *cursor, const char *name, size_t length)
{
	int written = name ? snprintf(cursor->path + length, PATH_SIZE - length, "%s%s",
				      length ? "." : "", name)
			   : 0;

	if (written <= 0)
		return length;
	return (size_t)written < PATH_SIZE - length ? length + (size_t)written : PATH_SIZE - 1;
}

static void find_in_structure(struct cursor *cursor, const struct data_type *type, uint64_t offset,
			      size_t length, size_t depth)
{
	const struct type_member *members = type_members(cursor->types, type);

	for (size_t i = 0; i < type->member_count && !is_full(cursor); i++) {
		const struct type_member *each = &members[i];
		size_t longer = add_name(cursor, each->name, length);
		uint64_t size = (each->bit_offset + each->bit_size + 7) / 8;

		if (each->bit_size)
			keep(cursor,
			     (struct member){ offset + each->offset, size, each->type, 0,
					      each->bit_size, each->bit_offset },
			     longer);
		else
			find_members(cursor, each->type, offset + each->offset, longer, depth + 1);
	}
}

static void find_members(struct cursor *cursor, type_number number, uint64_t offset, size_t length,
			 size_t depth)
{
	const struct data_type *type = type_get(cursor->types, number);
	bool is_array = type->kind == TYPE_ARRAY;

	if (library_value_is(type))
		keep(cursor, (struct member){ offset, type->size, number }, length);
	if (depth < DEEPEST && (type->kind == TYPE_STRUCTURE || type->kind == TYPE_UNION))
		find_in_structure(cursor, type, offset, length, depth);
	else if (depth < DEEPEST && is_array &&
		 type_get(cursor->types, type->target)->kind != TYPE_CHARACTER)
		find_elements(cursor, type, offset, length, depth);
	else if (is_array && has_no_bounds(cursor, type) && offset <= cursor->size)
		keep(cursor, (struct member){ offset, cursor->size - offset, number }, length);
	else
		keep(cursor, (struct member){ offset, type->size, number }, length);
}

/* Make the rows of the allocation at the cursor: none if its type says nothing of its members. */
static void find_rows(struct cursor *cursor)
{
	const struct analysis *analysis = cursor->base.sql->analysis;
	allocation_id id = (allocation_id)cursor->base.id;
	struct memory_range range;
	struct typed typed;
	struct data_type array = { .kind = TYPE_ARRAY, .count = UINT64_MAX };

	cursor->row = cursor->members.count = cursor->texts.count = 0;
	if (!analysis_type_of(analysis, id, &typed) || typed.fit <= FIT_REGION)
		return;
	range = allocation_range_near(analysis_index(analysis), id, &cursor->base.hint);
	cursor->start = range.start;
	cursor->size = range.end - range.start;
	cursor->types = typing_types(analysis_typing(analysis));
	cursor->has_tail = typed.fit == FIT_TAIL;
	array.target = typed.type;
	if (typed.fit == FIT_ARRAY)
		find_elements(cursor, &array, 0, 0, 0);
	else
		find_members(cursor, typed.type, 0, 0, 0);
}

static bool find(struct sql_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	find_rows(cursor);
	if (!cursor->error)
		return cursor->members.count;
	sql_fail(base->sql, take(cursor->error));
	return true;
}

static void open_members(struct sql_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	arrays_use(analysis_account(base->sql->analysis), &cursor->members, &cursor->texts);
}

static void close_members(struct sql_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	arrays_release(&cursor->members, &cursor->texts);
}

static struct error *begin(struct sql_cursor *cursor, int plan)
{
	TRY(analysis_need_types(cursor->sql->analysis));
	return sql_begin_ids(cursor);
}

static bool step(struct sql_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	return ++cursor->row < cursor->members.count;
}

static const struct member *member_at(struct sql_cursor *base, const struct cursor **ret)
{
	*ret = (struct cursor *)base;
	return &(*ret)->members.items[(*ret)->row];
}

static void result_characters(sqlite3_context *context, const struct image *image, uint64_t address,
			      uint64_t size)
{
	uint64_t present = 0;
	const uint8_t *bytes = image_bytes(image, address, &present);
	_cleanup_(free) char *text = NULL;

	size = size < present ? size : present;
	if (bytes || size == 0)
		text = strndup(bytes ? (const char *)bytes : "", MIN(size, MOST_CHARACTERS));
	if (bytes || size == 0)
		sql_result_escaped(context, text);
}

/* Return a number of up to 64 bits. */
static void result_bits(sqlite3_context *context, const struct data_type *type, uint64_t bits,
			unsigned int count)
{
	double real;
	float single;

	if (type->form == FORM_FLOAT && count == 64) {
		memcpy(&real, &bits, sizeof(real));
		sqlite3_result_double(context, real);
	} else if (type->form == FORM_FLOAT && count == 32) {
		memcpy(&single, &bits, sizeof(single));
		sqlite3_result_double(context, (double)single);
	} else if (type->form == FORM_SIGNED && count < 64 && bits >> (count - 1)) {
		sqlite3_result_int64(context, (sqlite3_int64)(bits | ~UINT64_C(0) << count));
	} else {
		sql_result_number(context, bits);
	}
}

static bool read_bits(const struct image *image, const struct member *member, uint64_t address,
		      uint64_t *ret)
{
	*ret = 0;
	if (member->size == 0 || member->size > sizeof(*ret) ||
	    !image_read(image, address, ret, member->size))
		return false;
	*ret >>= member->bit_offset;
	if (member->bit_size && member->bit_size < 64)
		*ret &= (UINT64_C(1) << member->bit_size) - 1;
	return true;
}

static bool read_library(struct sql_cursor *base, struct library_value *ret)
{
	const struct cursor *cursor;
	const struct member *member = member_at(base, &cursor);

	return library_value_read(cursor->types, analysis_image(base->sql->analysis),
				  type_get(cursor->types, member->type),
				  cursor->start + member->offset, ret);
}

static void get_length(struct sql_cursor *base, sqlite3_context *context)
{
	struct library_value library;

	if (read_library(base, &library))
		sql_result_number(context, library.length);
}

static void get_value(struct sql_cursor *base, sqlite3_context *context)
{
	struct library_value library = { .is_text = false };

	const struct cursor *cursor;
	const struct member *member = member_at(base, &cursor);
	const struct image *image = analysis_image(base->sql->analysis);
	const struct data_type *type = type_get(cursor->types, member->type);
	uint64_t address = cursor->start + member->offset, bits;

	if (base->sql->no_content)
		sql_result_text(context, report_left_out);
	else if (read_library(base, &library) && library.is_text)
		result_characters(context, image, library.elements, library.length);
	else if (type->kind == TYPE_ARRAY)
		result_characters(context, image, address, member->size);
	else if ((type->kind == TYPE_NUMBER || type->kind == TYPE_CHARACTER ||
		  type->kind == TYPE_POINTER) &&
		 read_bits(image, member, address, &bits))
		result_bits(context, type, bits,
			    member->bit_size ? member->bit_size : (unsigned int)member->size * 8);
}

static void get_target(struct sql_cursor *base, sqlite3_context *context)
{
	const struct cursor *cursor;
	const struct member *member = member_at(base, &cursor);
	const struct analysis *analysis = base->sql->analysis;
	struct library_value library;
	allocation_id id;
	uint64_t word;

	if (read_library(base, &library))
		word = library.elements;
	else if (type_get(cursor->types, member->type)->kind != TYPE_POINTER ||
		 !image_read_word(analysis_image(analysis), cursor->start + member->offset, &word))
		return;
	id = allocation_find(analysis_index(analysis), word);
	if (id != NO_ALLOCATION)
		sql_result_number(context, id);
}

static void get_path(struct sql_cursor *base, sqlite3_context *context)
{
	const struct cursor *cursor;
	const struct member *member = member_at(base, &cursor);

	sql_result_escaped(context, &cursor->texts.items[member->path]);
}

static void get_offset(struct sql_cursor *base, sqlite3_context *context)
{
	const struct cursor *cursor;

	sql_result_number(context, member_at(base, &cursor)->offset);
}

static void get_size(struct sql_cursor *base, sqlite3_context *context)
{
	const struct cursor *cursor;

	sql_result_number(context, member_at(base, &cursor)->size);
}

static void get_type(struct sql_cursor *base, sqlite3_context *context)
{
	const struct cursor *cursor;
	const struct member *member = member_at(base, &cursor);
	const char *text = type_text(cursor->types, member->type, "", "");
	_cleanup_(free) char *name = text ? short_name(text) : NULL;

	sql_result_escaped(context, name);
}

static sqlite3_int64 row_id(const struct sql_cursor *cursor)
{
	return (sqlite3_int64)cursor->at * MOST_MEMBERS +
	       (sqlite3_int64)((const struct cursor *)cursor)->row;
}

#define COLUMNS(X)                            \
	X("id", VALUE_NUMBER, sql_get_id)     \
	X("path", VALUE_TEXT, get_path)       \
	X("offset", VALUE_BYTES, get_offset)  \
	X("size", VALUE_BYTES, get_size)      \
	X("type", VALUE_TEXT, get_type)       \
	X("value", VALUE_ANY, get_value)      \
	X("target", VALUE_NUMBER, get_target) \
	X("length", VALUE_NUMBER, get_length)

static const struct sql_rows rows = {
	.cursor_size = sizeof(struct cursor),
	.getters = (sql_getter *const[]){ COLUMNS(AS_GETTER) },
	.best = sql_best_ids,
	.open = open_members,
	.close = close_members,
	.begin = begin,
	.narrow = sql_narrow_ids,
	.seek = sql_seek_used,
	.find = find,
	.step = step,
	.row_id = row_id,
};

const struct sql_table sql_member_table = {
	"what allocations of a known type hold, by the names of members",
	TABLE("member", NULL, COLUMNS(AS_COLUMN)),
	.rows = &rows,
};
