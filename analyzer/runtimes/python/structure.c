/*
 * Words of CPython that are no addresses, and no values of programs: counts, lengths, flags, and
 * the texts of names. Others, such as hashes, digits and characters, are values.
 *
 * Of an object stay its count, and all before it; of builtin types below also what the compiler put
 * before items, or the part of it that has no hash. Names are the texts that code, functions,
 * modules and types refer to, and keys that are interned: those of attributes and of variables are,
 * and keys that a program reads or computes are not.
 */
#include "analyzer/base/macros.h"
#include "analyzer/runtimes/keeper.h"
#include "analyzer/runtimes/python/blocks.h"
#include "analyzer/runtimes/python/collector.h"
#include "analyzer/runtimes/python/entries.h"
#include "analyzer/runtimes/python/layouts.h"
#include "analyzer/runtimes/python/objects.h"
#include "analyzer/runtimes/python/space.h"
#include "analyzer/runtimes/python/values.h"

#include <string.h>

enum {
	WORD = 8,
	HEAD = 16,   /* count and type */
	LENGTH = 16, /* of what has a number of items, and of dicts and strings */
	ITEMS = 24,
	STATE = 32,  /* of a string */
	BYTES = 32,  /* of bytes: the first */
	DIGITS = 24, /* of an int */
	DICT_KEYS = 32,
	KEYS_HEAD = 40,
	SET_END = 40, /* fill, used, mask; then the table and a hash */
	MOST_NAMES = 1 << 16,
	MOST_TEXT = 1 << 20,
};

static const uint64_t INT = 1 << 24, LIST = 1 << 25, TUPLE = 1 << 26, BYTES_FLAG = 1 << 27,
		      DICT = 1 << 29;

static struct python *python_of(const struct keeper *keeper)
{
	return (struct python *)keeper->space;
}

/*
 * Counts and indices of an object: of a word that was never written, remains of values would stay.
 */
static void keep_indices(struct keeper *keeper, uint64_t start, uint64_t end)
{
	static const uint64_t MOST = UINT64_C(1) << 32, MOST_NEGATIVE = 1 << 16;
	uint64_t word;

	for (uint64_t at = start; at < end; at += WORD)
		if (view_word(&keeper->view, at, &word) && (word < MOST || -word < MOST_NEGATIVE))
			keep_numbers(keeper, at, WORD);
}

/* Ints and flags of a frame that is an object, or of a generator with one: see frames.c. */
static void keep_halves(struct keeper *keeper, const struct python_type *type, uint64_t object)
{
	enum { DEPTH = 80, END = 104, MOST = 1 << 20 };
	uint64_t frame = object + python_frames_start(&python_of(keeper)->threads, type);
	uint64_t start = type->kind == PYTHON_FRAME ? object + DEPTH : frame - WORD;
	uint64_t end = type->kind == PYTHON_FRAME ? object + END : frame;
	int32_t half;

	for (uint64_t at = start; at < end; at += sizeof(half))
		if (view_read(&keeper->view, at, &half, sizeof(half)) && half > -MOST &&
		    half < MOST)
			keep_numbers(keeper, at, sizeof(half));
}

/* The characters of a string that is a name; with is_key only if it is interned. */
static void keep_string_name(struct keeper *keeper, uint64_t object, bool is_key)
{
	struct python_text text;

	if (!python_find_text(&keeper->view, python_of(keeper)->string_head, object, &text) ||
	    text.length > MOST_TEXT || (is_key && !text.is_interned))
		return;
	/* With its end. */
	keep_name(keeper, text.start, (text.length + 1) * text.width);
}

static void keep_name_at(struct keeper *keeper, uint64_t place)
{
	uint64_t object;

	if (view_word(&keeper->view, place, &object))
		keep_string_name(keeper, object, false);
}

static void keep_names_of_tuple(struct keeper *keeper, uint64_t place)
{
	uint64_t tuple, count = 0;

	if (!view_word(&keeper->view, place, &tuple) ||
	    !python_has_flag(&keeper->view, tuple, TUPLE) ||
	    !view_word(&keeper->view, tuple + LENGTH, &count))
		return;
	for (uint64_t i = 0; i < count && i < MOST_NAMES; i++)
		keep_name_at(keeper, tuple + ITEMS + WORD * i);
}

/* Keep strings that words of the object lead to. */
static void keep_names_of(struct keeper *keeper, uint64_t object, uint64_t size)
{
	for (uint64_t at = HEAD; at + WORD <= size; at += WORD)
		keep_name_at(keeper, object + at);
}

/* Names of variables, and the table by which instructions have lines. */
static void keep_code(struct keeper *keeper, uint64_t object, uint64_t size)
{
	const struct python_layout *layout = python_of(keeper)->threads.layout;
	uint64_t lines, length;

	if (!layout)
		return;
	keep_numbers(keeper, object + HEAD, size - HEAD);
	keep_names_of(keeper, object, size);
	for (unsigned int i = 0; i <= 2; i++)
		keep_names_of_tuple(keeper, object + layout->names + WORD * i);
	if (!view_word(&keeper->view, object + layout->lines, &lines) ||
	    !python_has_flag(&keeper->view, lines, BYTES_FLAG) ||
	    !view_word(&keeper->view, lines + LENGTH, &length) || length > MOST_TEXT)
		return;
	keep_numbers(keeper, lines + BYTES, length);
}

/* A number that is the address of a block: such ints are references, too. */
static bool is_address(struct keeper *keeper, uint64_t object)
{
	enum { DIGIT_BITS = 30 };
	uint32_t digits[2];

	return view_read(&keeper->view, object + DIGITS, digits, sizeof(digits)) &&
	       allocation_find(python_of(keeper)->space.index,
			       (uint64_t)digits[1] << DIGIT_BITS | digits[0]) != NO_ALLOCATION;
}

static void keep_string_head(struct keeper *keeper, uint64_t object)
{
	keep_numbers(keeper, object + LENGTH, WORD);
	keep_numbers(keeper, object + STATE, sizeof(uint32_t));
}

/* The words that say how a string's characters stand; and these, where they are asked for. */
static void keep_string(struct keeper *keeper, uint64_t object)
{
	const struct structure_visitor *visitor = keeper->visitor;
	struct python_text text;

	keep_string_head(keeper, object);
	if (!keeper->error && visitor->text &&
	    python_find_text(&keeper->view, python_of(keeper)->string_head, object, &text) &&
	    text.length <= UINT32_MAX)
		keeper->error = visitor->text(visitor->data, text.start, text.length * text.width);
}

/* How much of an object of a builtin type, or derived from one, is structure: up to there. */
static uint64_t end_of_structure(const struct python_type *type)
{
	static const char *const names[] = {
		"builtin_function_or_method",
		"cell",
		"classmethod",
		"function",
		"getset_descriptor",
		"member_descriptor",
		"method",
		"method_descriptor",
		"module",
		"property",
		"staticmethod",
		"traceback",
		"wrapper_descriptor",
	};

	if (type->kind == PYTHON_SET)
		return SET_END;
	if (type->kind)
		return type->size;
	if (type->flags & (LIST | DICT))
		return DICT_KEYS + WORD;
	for (size_t i = 0; i < COUNT_OF(names) && !(type->flags & TYPE_HEAP) && type->name; i++)
		if (strcmp(type->name, names[i]) == 0)
			return type->size;
	return type->item ? LENGTH + WORD : HEAD;
}

/* True if strings that the object refers to are names. */
static bool has_names(const struct python_type *type)
{
	static const char *const names[] = { "function", "module", "builtin_function_or_method" };

	for (size_t i = 0; i < COUNT_OF(names) && !(type->flags & TYPE_HEAP) && type->name; i++)
		if (strcmp(type->name, names[i]) == 0)
			return true;
	return false;
}

static void keep_object(struct keeper *keeper, const struct python_type *type, uint64_t object)
{
	uint64_t end = end_of_structure(type);

	keep_numbers(keeper, object, WORD);
	if (type->flags & TYPE_STRING) {
		keep_string(keeper, object);
	} else if (type->flags & INT) {
		if (is_address(keeper, object))
			keep_numbers(keeper, object + LENGTH, HEAD);
	} else if (type->kind == PYTHON_CODE) {
		keep_code(keeper, object, type->size);
	} else {
		keep_indices(keeper, object + HEAD, object + end);
		if (type->kind == PYTHON_FRAME || type->kind == PYTHON_GENERATOR)
			keep_halves(keeper, type, object);
		if (has_names(type))
			keep_names_of(keeper, object, type->size);
	}
}

/* True if the value of that key is the name of a class or module, or a part of it. */
static bool is_own_name(struct keeper *keeper, uint64_t key)
{
	static const char *const keys[] = { "__module__", "__name__", "__qualname__" };
	enum { MOST_KEY = 24 };
	char text[MOST_KEY];

	if (!python_read_text(&keeper->view, python_of(keeper)->string_head, key, text,
			      sizeof(text)))
		return false;
	for (size_t i = 0; i < COUNT_OF(keys); i++)
		if (strcmp(text, keys[i]) == 0)
			return true;
	return false;
}

/* The name that the word at place is the address of. */
static void keep_c_name_at(struct keeper *keeper, uint64_t place)
{
	enum { MOST_NAME = 201 };
	uint64_t name;

	if (view_word(&keeper->view, place, &name))
		keep_c_text(keeper, name, MOST_NAME);
}

/* The head of a table, and its keys that are names; hashes are none of it. */
static void keep_keys(struct keeper *keeper, uint64_t table)
{
	struct python_entries entries;
	uint64_t key;

	if (!python_find_entries(&keeper->view, table, &entries))
		return;
	keep_numbers(keeper, table, KEYS_HEAD);
	for (uint64_t i = 0; i < entries.count; i++) {
		uint64_t place = entries.first_key + i * entries.step;

		if (!view_word(&keeper->view, place, &key))
			break;
		keep_string_name(keeper, key, true);
		if (entries.step > WORD && is_own_name(keeper, key))
			keep_name_at(keeper, place + WORD);
	}
}

/* Keep struct PyMemberDef[]: | name | i32 type | offset | i32 flags | text |. */
static void keep_members(struct keeper *keeper, uint64_t type)
{
	enum { MEMBERS = 240, MEMBER = 40, MOST_MEMBERS = 1 << 10 };
	uint64_t members, name;

	if (!view_word(&keeper->view, type + MEMBERS, &members) || !members)
		return;
	for (uint64_t at = members; at < members + (uint64_t)MEMBER * MOST_MEMBERS; at += MEMBER) {
		if (!view_word(&keeper->view, at, &name) || !name)
			break;
		keep_numbers(keeper, at + WORD, MEMBER - WORD);
		keep_c_name_at(keeper, at);
	}
}

static void keep_type(struct keeper *keeper, const struct python_type *type)
{
	enum { NAME = 24, TYPE_END = 416, MORE = 128 };

	keep_numbers(keeper, type->address, TYPE_END);
	if (type->flags & TYPE_HEAP)
		keep_names_of(keeper, type->address, TYPE_END + MORE);
	keep_members(keeper, type->address);
	keep_c_name_at(keeper, type->address + NAME);
}

static void keep_by_mark(struct keeper *keeper, allocation_id id)
{
	const struct allocation_index *index = python_of(keeper)->space.index;
	struct memory_range range = { allocation_start(index, id),
				      allocation_start(index, id) + allocation_size(index, id) };
	uint32_t mark = python_number_of(python_of(keeper), id);
	const struct python_type *type = python_type_of(python_of(keeper), id);

	if (type) {
		uint64_t object = python_object_at(python_of(keeper), id);

		if (object > range.start)
			keep_numbers(keeper, range.start, object - range.start);
		keep_object(keeper, type, object);
	} else if (mark == PYTHON_KEYS) {
		keep_keys(keeper, range.start);
	} else if (mark == PYTHON_DEAD && python_blocks_are_free_keys(&keeper->view, range, 1)) {
		keep_numbers(keeper, range.start, KEYS_HEAD);
	} else if (mark > PYTHON_VALUES) { /* their order */
		keep_numbers(keeper, range.start, WORD * (uint64_t)(mark - PYTHON_VALUES));
	}
}

struct error *python_visit_structure(struct object_space *space,
				     const struct structure_visitor *visitor)
{
	struct python *python = (struct python *)space;
	struct keeper keeper = { visitor, { space->image }, NULL, space };
	uint32_t module;

	TRY(python_learn_types(python, &module));
	array_for_each(type, &python->types.list)
		keep_type(&keeper, type);
	bitmap_for_each(id, allocation_used(space->index))
		keep_by_mark(&keeper, (allocation_id)id);
	array_for_each(constant, &python->constants)
		keep_object(&keeper, &python->types.list.items[constant->type],
			    constant->range.start);
	array_for_each(chunk, &python->chunks)
		keep_numbers(&keeper, chunk->start, chunk->end - chunk->start);
	TRY(keeper.error);
	TRY(python_collector_visit_structure(&space->context, visitor));
	return python_frames_visit_structure(&python->threads, &python->types, space->program,
					     visitor);
}
