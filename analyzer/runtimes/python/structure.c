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

struct structure {
	struct python *python;
	const struct structure_visitor *visitor;
	struct view view;
};

static struct error *keep(const struct structure *structure, uint64_t start, uint64_t size)
{
	return structure->visitor->number(structure->visitor->data, start, size);
}

/*
 * Counts and indices of an object: of a word that was never written, remains of values would stay.
 */
static struct error *keep_numbers(struct structure *structure, uint64_t start, uint64_t end)
{
	static const uint64_t MOST = UINT64_C(1) << 32, MOST_NEGATIVE = 1 << 16;
	uint64_t word;

	for (uint64_t at = start; at < end; at += WORD)
		if (view_word(&structure->view, at, &word) &&
		    (word < MOST || -word < MOST_NEGATIVE))
			TRY(keep(structure, at, WORD));
	return NULL;
}

/* Ints and flags of a frame that is an object, or of a generator with one: see frames.c. */
static struct error *keep_halves(struct structure *structure, const struct python_type *type,
				 uint64_t object)
{
	enum { DEPTH = 80, END = 104, MOST = 1 << 20 };
	uint64_t frame = object + python_frames_start(&structure->python->threads, type);
	uint64_t start = type->kind == PYTHON_FRAME ? object + DEPTH : frame - WORD;
	uint64_t end = type->kind == PYTHON_FRAME ? object + END : frame;
	int32_t half;

	for (uint64_t at = start; at < end; at += sizeof(half))
		if (view_read(&structure->view, at, &half, sizeof(half)) && half > -MOST &&
		    half < MOST)
			TRY(keep(structure, at, sizeof(half)));
	return NULL;
}

/* The characters of a string that is a name; with is_key only if it is interned. */
static struct error *keep_name(struct structure *structure, uint64_t object, bool is_key)
{
	struct python_text text;

	if (!python_find_text(&structure->view, structure->python->string_head, object, &text) ||
	    text.length > MOST_TEXT || (is_key && !text.is_interned))
		return NULL;
	/* With its end. */
	return structure->visitor->name(structure->visitor->data, text.start,
					(text.length + 1) * text.width);
}

static struct error *keep_name_at(struct structure *structure, uint64_t place)
{
	uint64_t object;

	return view_word(&structure->view, place, &object) ? keep_name(structure, object, false)
							   : NULL;
}

static struct error *keep_names_of_tuple(struct structure *structure, uint64_t place)
{
	uint64_t tuple, count = 0;

	if (!view_word(&structure->view, place, &tuple) ||
	    !python_has_flag(&structure->view, tuple, TUPLE) ||
	    !view_word(&structure->view, tuple + LENGTH, &count))
		return NULL;
	for (uint64_t i = 0; i < count && i < MOST_NAMES; i++)
		TRY(keep_name_at(structure, tuple + ITEMS + WORD * i));
	return NULL;
}

/* Keep strings that words of the object lead to. */
static struct error *keep_names_of(struct structure *structure, uint64_t object, uint64_t size)
{
	for (uint64_t at = HEAD; at + WORD <= size; at += WORD)
		TRY(keep_name_at(structure, object + at));
	return NULL;
}

/* Names of variables, and the table by which instructions have lines. */
static struct error *keep_code(struct structure *structure, uint64_t object, uint64_t size)
{
	const struct python_layout *layout = structure->python->threads.layout;
	uint64_t lines, length;

	if (!layout)
		return NULL;
	TRY(keep(structure, object + HEAD, size - HEAD));
	TRY(keep_names_of(structure, object, size));
	for (unsigned int i = 0; i <= 2; i++)
		TRY(keep_names_of_tuple(structure, object + layout->names + WORD * i));
	if (!view_word(&structure->view, object + layout->lines, &lines) ||
	    !python_has_flag(&structure->view, lines, BYTES_FLAG) ||
	    !view_word(&structure->view, lines + LENGTH, &length) || length > MOST_TEXT)
		return NULL;
	return keep(structure, lines + BYTES, length);
}

/* A number that is the address of a block: such ints are references, too. */
static bool is_address(struct structure *structure, uint64_t object)
{
	enum { DIGIT_BITS = 30 };
	uint32_t digits[2];

	return view_read(&structure->view, object + DIGITS, digits, sizeof(digits)) &&
	       allocation_find(structure->python->space.index,
			       (uint64_t)digits[1] << DIGIT_BITS | digits[0]) != NO_ALLOCATION;
}

static struct error *keep_text(struct structure *structure, uint64_t object)
{
	TRY(keep(structure, object + LENGTH, WORD));
	return keep(structure, object + STATE, sizeof(uint32_t));
}

/* The words that say how a string's characters stand; and these, where they are asked for. */
static struct error *keep_string(struct structure *structure, uint64_t object)
{
	const struct structure_visitor *visitor = structure->visitor;
	struct python_text text;

	TRY(keep_text(structure, object));
	if (!visitor->text ||
	    !python_find_text(&structure->view, structure->python->string_head, object, &text) ||
	    text.length > UINT32_MAX)
		return NULL;
	return visitor->text(visitor->data, text.start, text.length * text.width);
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

static struct error *keep_object(struct structure *structure, const struct python_type *type,
				 uint64_t object)
{
	uint64_t end = end_of_structure(type);

	TRY(keep(structure, object, WORD));
	if (type->flags & TYPE_STRING)
		return keep_string(structure, object);
	if (type->flags & INT)
		return is_address(structure, object) ? keep(structure, object + LENGTH, HEAD)
						     : NULL;
	if (type->kind == PYTHON_CODE)
		return keep_code(structure, object, type->size);
	TRY(keep_numbers(structure, object + HEAD, object + end));
	if (type->kind == PYTHON_FRAME || type->kind == PYTHON_GENERATOR)
		TRY(keep_halves(structure, type, object));
	return has_names(type) ? keep_names_of(structure, object, type->size) : NULL;
}

/* True if the value of that key is the name of a class or module, or a part of it. */
static bool is_own_name(struct structure *structure, uint64_t key)
{
	static const char *const keys[] = { "__module__", "__name__", "__qualname__" };
	enum { MOST_KEY = 24 };
	char text[MOST_KEY];

	if (!python_read_text(&structure->view, structure->python->string_head, key, text,
			      sizeof(text)))
		return false;
	for (size_t i = 0; i < COUNT_OF(keys); i++)
		if (strcmp(text, keys[i]) == 0)
			return true;
	return false;
}

/* The name that the word at place is the address of. */
static struct error *keep_c_text(struct structure *structure, uint64_t place)
{
	enum { MOST_NAME = 200 };
	uint64_t name, length = 0;
	char byte;

	if (!view_word(&structure->view, place, &name))
		return NULL;
	while (length < MOST_NAME && view_read(&structure->view, name + length, &byte, 1) && byte)
		length++;
	return structure->visitor->name(structure->visitor->data, name, length + 1);
}

/* The head of a table, and its keys that are names; hashes are none of it. */
static struct error *keep_keys(struct structure *structure, uint64_t table)
{
	struct python_entries entries;
	uint64_t key;

	if (!python_find_entries(&structure->view, table, &entries))
		return NULL;
	TRY(keep(structure, table, KEYS_HEAD));
	for (uint64_t i = 0; i < entries.count; i++) {
		uint64_t place = entries.first_key + i * entries.step;

		if (!view_word(&structure->view, place, &key))
			break;
		TRY(keep_name(structure, key, true));
		if (entries.step > WORD && is_own_name(structure, key))
			TRY(keep_name_at(structure, place + WORD));
	}
	return NULL;
}

/* Keep struct PyMemberDef[]: | name | i32 type | offset | i32 flags | text |. */
static struct error *keep_members(struct structure *structure, uint64_t type)
{
	enum { MEMBERS = 240, MEMBER = 40, MOST_MEMBERS = 1 << 10 };
	uint64_t members, name;

	if (!view_word(&structure->view, type + MEMBERS, &members) || !members)
		return NULL;
	for (uint64_t at = members; at < members + (uint64_t)MEMBER * MOST_MEMBERS; at += MEMBER) {
		if (!view_word(&structure->view, at, &name) || !name)
			break;
		TRY(keep(structure, at + WORD, MEMBER - WORD));
		TRY(keep_c_text(structure, at));
	}
	return NULL;
}

static struct error *keep_type(struct structure *structure, const struct python_type *type)
{
	enum { NAME = 24, TYPE_END = 416, MORE = 128 };

	TRY(keep(structure, type->address, TYPE_END));
	if (type->flags & TYPE_HEAP)
		TRY(keep_names_of(structure, type->address, TYPE_END + MORE));
	TRY(keep_members(structure, type->address));
	return keep_c_text(structure, type->address + NAME);
}

static struct error *keep_by_mark(struct structure *structure, allocation_id id)
{
	const struct allocation_index *index = structure->python->space.index;
	struct memory_range range = { allocation_start(index, id),
				      allocation_start(index, id) + allocation_size(index, id) };
	uint32_t mark = python_number_of(structure->python, id);
	const struct python_type *type = python_type_of(structure->python, id);

	if (type) {
		uint64_t object = python_object_at(structure->python, id);

		if (object > range.start)
			TRY(keep(structure, range.start, object - range.start));
		return keep_object(structure, type, object);
	}
	if (mark == PYTHON_KEYS)
		return keep_keys(structure, range.start);
	if (mark == PYTHON_DEAD && python_blocks_are_free_keys(&structure->view, range, 1))
		return keep(structure, range.start, KEYS_HEAD);
	if (mark > PYTHON_VALUES) /* their order */
		return keep(structure, range.start, WORD * (uint64_t)(mark - PYTHON_VALUES));
	return NULL;
}

static struct error *visit_heap(struct structure *structure)
{
	const struct allocation_index *index = structure->python->space.index;

	bitmap_for_each(id, allocation_used(index))
		TRY(keep_by_mark(structure, (allocation_id)id));
	return NULL;
}

struct error *python_visit_structure(struct object_space *space,
				     const struct structure_visitor *visitor)
{
	struct python *python = (struct python *)space;
	struct structure structure = { python, visitor, { space->image } };
	uint32_t module;

	TRY(python_learn_types(python, &module));
	array_for_each(type, &python->types.list)
		TRY(keep_type(&structure, type));
	TRY(visit_heap(&structure));
	array_for_each(constant, &python->constants)
		TRY(keep_object(&structure, &python->types.list.items[constant->type],
				constant->range.start));
	array_for_each(chunk, &python->chunks)
		TRY(keep(&structure, chunk->start, chunk->end - chunk->start));
	TRY(python_collector_visit_structure(&space->context, visitor));
	return python_frames_visit_structure(&python->threads, &python->types, space->program,
					     visitor);
}
