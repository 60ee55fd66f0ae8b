/*
 * How a program in Python reaches an object: "app.users['anna'].orders[3].note".
 *
 * Paths begin at modules and at what variables of running functions refer to. Each step is a link:
 * a reference from an object, or from a block that it has for itself, such as the table of a dict,
 * that the language has words for. The layouts are those of CPython 3.6 to 3.14:
 * Include/cpython/object.h, Include/internal/pycore_dict.h and pycore_object.h,
 * Modules/_collectionsmodule.c.
 */
#include "analyzer/base/macros.h"
#include "analyzer/program/getter.h"
#include "analyzer/runtimes/object_values.h"
#include "analyzer/runtimes/python/entries.h"
#include "analyzer/runtimes/python/objects.h"
#include "analyzer/runtimes/python/space.h"
#include "analyzer/runtimes/python/values.h"

#include <inttypes.h>
#include <string.h>

enum {
	WORD = 8,
	/* Fields of objects. */
	TYPE = 8,
	LENGTH = 16, /* of lists, tuples, dicts */
	ITEMS = 24,  /* of tuples: the first; of lists: the address of the first */
	KEYS = 32,   /* of dicts: the address of their table */
	VALUES = 40, /* and of values that stand apart from it, or null */
	MODULE_DICT = 16,
	MODULE_NAME = 48,
	SET_MASK = 32,
	SET_TABLE = 40,
	BLOCKS = 24, /* of deques: the first block; where its first item is */
	FIRST_ITEM = 40,
	LINKS = 16, /* of the collector, in front of objects */
	/* Fields of types. */
	TYPE_MEMBERS = 240, /* struct PyMemberDef[] */
	TYPE_GETTERS = 248, /* struct PyGetSetDef[] */
	TYPE_BASE = 256,
	TYPE_DICT = 264,
	TYPE_GET = 272, /* a function, of descriptors */
	TYPE_DICT_OFFSET = 288,

	MOST_BASES = 64,
	MOST_MEMBERS = 1 << 10,
	MOST_TEXT = 128,
};

static const uint64_t TAG = 3, MOST_ITEMS = 1 << 28;
/* Flags of types, and of what is derived from them. */
static const uint64_t INLINE_VALUES = 1 << 2; /* 3.13 and later */
static const uint64_t LIST = 1 << 25, TUPLE = 1 << 26, DICT = 1 << 29;
static const uint64_t TYPE_OF_TYPES = UINT64_C(1) << 31;
static const uint64_t WITHOUT_LINKS = 1 << 24 | 1 << 27 | TYPE_STRING; /* int, bytes, str */

enum link_kind {
	LINK_ATTRIBUTES, /* the dict that the attributes are in: it is not spoken of */
	LINK_ATTRIBUTE,	 /* named by a string */
	LINK_KEY,	 /* the value of a key */
	LINK_KEYS,	 /* a key itself */
	LINK_ITEM,	 /* by number */
	LINK_ELEMENT,	 /* of what has no order */
	LINK_VARIABLE,	 /* of a function that waits, or of a frame */
	LINK_AWAITED,	 /* what a coroutine waits for */
	LINK_FLAT,	 /* an element of numpy's, by number */
	LINK_QUEUED,
	LINK_WORD, /* of the object, at an offset */
	LINK_CLASS,
};

const struct object_step python_steps[] = {
	[LINK_ATTRIBUTES] = { .item = OBJECT_ITEMS_BEHIND },
	[LINK_KEYS] = { ".keys()", OBJECT_KEY },
	[LINK_ITEM] = { "[#]" },
	[LINK_ELEMENT] = { "{...}" },
	[LINK_VARIABLE] = { ".f_locals['@']" },
	[LINK_AWAITED] = { ".cr_await" },
	[LINK_FLAT] = { ".flat[#]" },
	[LINK_QUEUED] = { ".<items>[#]" },
	[LINK_CLASS] = { ".__class__", OBJECT_NO_ITEM },
};

static struct python *python_of(struct object_space *space)
{
	return (struct python *)space;
}

/* which: the key's address; number: also the offset of a word. */
static void emit(struct object_walk *walk, enum link_kind kind, uint64_t place, uint64_t target,
		 uint64_t which, uint64_t number)
{
	if (target & ~TAG)
		object_walk_follow(
			walk, &(struct object_link){ kind, target & ~TAG, place, which, number });
}

/* Words in a row. */
static void walk_row(struct object_walk *walk, enum link_kind kind, uint64_t first, uint64_t count,
		     uint64_t step)
{
	uint64_t word;

	for (uint64_t i = 0; i < count && object_walk_step(walk); i++) {
		if (!view_word(&walk->view, first + step * i, &word))
			return;
		emit(walk, kind, first + step * i, word, 0, i);
	}
}

static void walk_entries(struct object_walk *walk, const struct python_entries *entries)
{
	for (uint64_t i = 0; i < entries->count && object_walk_step(walk); i++) {
		uint64_t place = entries->first_key + i * entries->step, pair[2];

		if (!view_read(&walk->view, place, pair, sizeof(pair)))
			return;
		if (pair[1] != 0)
			emit(walk, LINK_KEY, place + WORD, pair[1], pair[0], 0);
		if (pair[1] != 0)
			emit(walk, LINK_KEYS, place, pair[0], 0, 0);
	}
}

/* Values begin with how many they are from 3.13 on. */
static void walk_values(struct object_walk *walk, enum link_kind kind,
			const struct python_entries *entries, uint64_t values)
{
	uint64_t value, key;

	if (python_of(walk->space)->values_are_counted)
		values += WORD;
	for (uint64_t i = 0; i < entries->count && object_walk_step(walk); i++)
		if (view_word(&walk->view, values + WORD * i, &value) && value != 0 &&
		    view_word(&walk->view, entries->first_key + i * entries->step, &key))
			emit(walk, kind, values + WORD * i, value, key, 0);
}

static void walk_dict(struct object_walk *walk, uint64_t dict)
{
	struct python_entries entries;
	uint64_t table, values;

	if (!view_word(&walk->view, dict + KEYS, &table) ||
	    !view_word(&walk->view, dict + VALUES, &values) ||
	    !python_find_entries(&walk->view, table, &entries))
		return;
	if (values)
		walk_values(walk, LINK_KEY, &entries, values);
	else
		walk_entries(walk, &entries);
}

static void walk_items(struct object_walk *walk, uint64_t object, bool is_list)
{
	uint64_t first = object + ITEMS, count;

	if (view_word(&walk->view, object + LENGTH, &count) && count <= MOST_ITEMS &&
	    (!is_list || view_word(&walk->view, first, &first)))
		walk_row(walk, LINK_ITEM, first, count, WORD);
}

static void walk_set(struct object_walk *walk, uint64_t set)
{
	uint64_t mask, table;

	if (view_word(&walk->view, set + SET_MASK, &mask) && mask <= MOST_ITEMS &&
	    view_word(&walk->view, set + SET_TABLE, &table))
		walk_row(walk, LINK_ELEMENT, table, mask + 1, 2 * WORD);
}

/* Blocks of 64 items, each between links to the one before and the next. */
static void walk_deque(struct object_walk *walk, uint64_t deque)
{
	enum { BLOCK_ITEMS = 64 };
	uint64_t count, block, at, item;

	if (!view_word(&walk->view, deque + LENGTH, &count) || count > MOST_ITEMS ||
	    !view_word(&walk->view, deque + BLOCKS, &block) ||
	    !view_word(&walk->view, deque + FIRST_ITEM, &at) || at >= BLOCK_ITEMS)
		return;
	for (uint64_t i = 0; i < count && object_walk_step(walk); i++) {
		if (!view_word(&walk->view, block + WORD * (1 + at), &item))
			return;
		emit(walk, LINK_ITEM, block + WORD * (1 + at), item, 0, i);
		if (++at < BLOCK_ITEMS)
			continue;
		at = 0;
		if (!view_word(&walk->view, block + WORD * (1 + BLOCK_ITEMS), &block))
			return;
	}
}

/* Values of attributes may look like an object: their second word then leads to no type. */
static bool is_dict(struct object_walk *walk, uint64_t object)
{
	return python_has_flag(&walk->view, object, DICT) &&
	       python_class_at(python_of(walk->space), &walk->view, object);
}

/* Attributes without a dict: values that the word before an object leads to, or in the object. */
static void walk_attributes(struct object_walk *walk, const struct python_type *type,
			    uint64_t values)
{
	struct python_entries entries;
	uint64_t keys;

	/* 3.12 marks the address of values by the one before it. */
	if (values != 0 && python_find_shared_keys(&walk->view, type->address, &keys, &entries))
		walk_values(walk, LINK_ATTRIBUTE, &entries, (values + TAG) & ~TAG);
}

/* Walk the words before the object, without the collector's links. */
static void walk_head(struct object_walk *walk, const struct python_type *type, uint64_t start,
		      uint64_t object)
{
	for (uint64_t at = start; at + LINKS < object; at += WORD) {
		uint64_t word;

		if (!view_word(&walk->view, at, &word))
			return;
		if (is_dict(walk, word))
			emit(walk, LINK_ATTRIBUTES, at, word, 0, 0);
		else if (type->flags & TYPE_MANAGED_DICT)
			walk_attributes(walk, type, word);
	}
}

/* The dict at that offset of an object has its attributes. */
static void walk_attribute_dict(struct object_walk *walk, uint64_t object, uint64_t offset)
{
	uint64_t dict;

	if (view_word(&walk->view, object + offset, &dict) && is_dict(walk, dict))
		emit(walk, LINK_ATTRIBUTES, object + offset, dict, 0, 0);
}

/* Up to 3.10 the names of its classes have no module. */
static bool is_of_contexts(const char *class, const char *name)
{
	static const char module[] = "_contextvars.";

	if (strncmp(class, module, sizeof(module) - 1) == 0)
		class += sizeof(module) - 1;
	return strcmp(class, name) == 0;
}

/*
 * Behind its size, an allocation may have anything; a frame in it has its variables. What a context
 * variable has behind its default is a value that only contexts hold.
 */
static void walk_words(struct object_walk *walk, const struct python_type *type, uint64_t object)
{
	bool is_variable = type->name && is_of_contexts(type->name, "ContextVar");
	uint64_t size = type->kind == PYTHON_GENERATOR
				? python_frames_start(&python_of(walk->space)->threads, type)
				: type->size;

	size = is_variable ? MIN(size, ITEMS + WORD) : size;
	for (uint64_t at = 2 * WORD; at + WORD <= size && object_walk_step(walk); at += WORD) {
		uint64_t word;

		if (!view_word(&walk->view, object + at, &word))
			return;
		emit(walk, LINK_WORD, object + at, word, 0, at);
	}
}

static bool is_named(const struct python_type *type, const char *name)
{
	return type->name && strcmp(type->name, name) == 0;
}

static void emit_variable(void *data, const struct runtime_local *local)
{
	if (local->address)
		object_walk_follow(data, &(struct object_link){ LINK_VARIABLE, local->address,
								.name = local->name });
}

/* How programs get from such an object to its frame; NULL: it has none. */
static const char *frame_attribute(const struct python_type *type)
{
	return is_named(type, "generator")	   ? ".gi_frame"
	       : is_named(type, "coroutine")	   ? ".cr_frame"
	       : is_named(type, "async_generator") ? ".ag_frame"
	       : is_named(type, "frame")	   ? ""
						   : NULL;
}

static void walk_frame(struct object_walk *walk, const struct python_type *type, uint64_t object,
		       uint64_t size)
{
	const struct frame_visitor visitor = { walk, NULL, emit_variable };
	struct python_threads *threads = &python_of(walk->space)->threads;
	struct python_types *types = &python_of(walk->space)->types;

	if (type->kind == PYTHON_FRAME) {
		walk->error = python_frames_visit_object(threads, types, object, &visitor);
		return;
	}
	if (is_named(type, "coroutine"))
		emit(walk, LINK_AWAITED, 0, python_frames_awaited(threads, types, object, size), 0,
		     0);
	walk->error = python_frames_visit_suspended(threads, types, object, size, &visitor);
}

/*
 * Include/internal/pycore_hamt.h: a node has a key and its value in turn, or null and another node
 * instead of both; or nodes alone, 32. Any other object has none of these.
 */
static void walk_mapping(struct object_walk *walk, uint64_t node, unsigned int depth)
{
	enum { MOST_DEPTH = 8, SLOTS = 32, PAIRS = 32 };
	const char *name = python_class_at(python_of(walk->space), &walk->view, node);
	bool is_array = name && strcmp(name, "hamt_array_node") == 0;
	uint64_t place = node + (is_array ? LENGTH : PAIRS), count = SLOTS, value;
	uint64_t key = 0;

	if (!name || strncmp(name, "hamt_", 5) != 0 || depth > MOST_DEPTH ||
	    (!is_array && !view_word(&walk->view, node + LENGTH, &count)))
		return;
	for (uint64_t i = 0; i < count && i < 2 * SLOTS && object_walk_step(walk);
	     i++, place += WORD) {
		if (!view_word(&walk->view, place, &value))
			return;
		if (!is_array && i % 2 == 0)
			key = value;
		else if (key)
			emit(walk, LINK_KEY, place, value, key, 0);
		else if (value)
			walk_mapping(walk, value, depth + 1);
	}
}

/* A context has the mapping, which has the root of its nodes. */
static void walk_context(struct object_walk *walk, uint64_t context)
{
	enum { MAPPING = 24, ROOT = 16 };
	uint64_t mapping, root;

	if (view_word(&walk->view, context + MAPPING, &mapping) &&
	    view_word(&walk->view, mapping + ROOT, &root))
		walk_mapping(walk, root, 0);
}

/*
 * numpy/ndarraytypes.h: | data | int dimensions | their lengths | strides | base | type |. What has
 * no base has its data for itself, without gaps.
 */
static void walk_array(struct object_walk *walk, uint64_t array)
{
	enum { DATA, DIMENSIONS, LENGTHS, BASE = 4, KIND, WORDS };
	enum { MOST_DIMENSIONS = 64, NUMBER = 28, OBJECTS = 17 };
	uint64_t words[WORDS], count = 1, length;
	uint32_t number;

	if (!view_read(&walk->view, array + 2 * WORD, words, sizeof(words)) || words[BASE] ||
	    !view_read(&walk->view, words[KIND] + NUMBER, &number, sizeof(number)) ||
	    number != OBJECTS || (uint32_t)words[DIMENSIONS] > MOST_DIMENSIONS)
		return;
	for (uint32_t i = 0; i < (uint32_t)words[DIMENSIONS] && count <= MOST_ITEMS; i++)
		count *= view_word(&walk->view, words[LENGTHS] + WORD * i, &length) &&
					 length <= MOST_ITEMS
				 ? length
				 : 0;
	walk_row(walk, LINK_FLAT, words[DATA], MIN(count, MOST_ITEMS), WORD);
}

/* Modules/_queuemodule.c from 3.13 on: a ring; before, a list is one of the object's words. */
static void walk_queue(struct object_walk *walk, uint64_t queue)
{
	enum { NEXT, FIRST, RING, ROOM, COUNT, WORDS };
	uint64_t words[WORDS], place, item;

	if (!view_read(&walk->view, queue + ITEMS, words, sizeof(words)) ||
	    words[COUNT] > words[ROOM] || words[FIRST] >= words[ROOM])
		return;
	for (uint64_t i = 0; i < words[COUNT] && object_walk_step(walk); i++) {
		place = words[RING] + WORD * ((words[FIRST] + i) % words[ROOM]);
		if (!view_word(&walk->view, place, &item))
			return;
		emit(walk, LINK_QUEUED, place, item, 0, i);
	}
}

static void walk_contents(struct object_walk *walk, const struct python_type *type, uint64_t object)
{
	if (type->flags & DICT)
		walk_dict(walk, object);
	else if (type->flags & (LIST | TUPLE))
		walk_items(walk, object, (type->flags & LIST) != 0);
	else if (is_named(type, "set") || is_named(type, "frozenset"))
		walk_set(walk, object);
	else if (is_named(type, "collections.deque"))
		walk_deque(walk, object);
	else if (type->name && is_of_contexts(type->name, "Context"))
		walk_context(walk, object);
	else if (is_named(type, "numpy.ndarray"))
		walk_array(walk, object);
	else if (is_named(type, "_queue.SimpleQueue"))
		walk_queue(walk, object);
}

/* Types may move meanwhile. */
void python_walk_links(struct object_walk *walk, allocation_id id)
{
	const struct python_type copy = *python_type_of(python_of(walk->space), id), *type = &copy;
	const struct allocation_index *index = walk->space->index;
	uint64_t object = python_object_at(python_of(walk->space), id),
		 start = allocation_start(index, id);
	uint64_t dict_offset = 0;

	if (type->flags & WITHOUT_LINKS)
		return;
	walk_contents(walk, type, object);
	if (frame_attribute(type))
		walk_frame(walk, type, object, start + allocation_size(index, id) - object);
	walk_head(walk, type, start, object);
	if (type->flags & TYPE_OF_TYPES)
		dict_offset = TYPE_DICT;
	else if (!view_word(&walk->view, type->address + TYPE_DICT_OFFSET, &dict_offset) ||
		 dict_offset > type->size)
		dict_offset = 0;
	if (dict_offset)
		walk_attribute_dict(walk, object, dict_offset);
	if (type->flags & INLINE_VALUES)
		walk_attributes(walk, type, object + type->size);
	if (!(type->flags & TUPLE))
		walk_words(walk, type, object);
	emit(walk, LINK_CLASS, object + TYPE, type->address, 0, 0);
}

uint64_t python_target_of(const struct object_space *space, allocation_id id)
{
	return python_object_at((const struct python *)space, id);
}

/* The state of a path, which ends in ".__dict__" then; before that, state_used bytes are used. */
enum {
	IS_ATTRIBUTE = 1, /* the dict at hand has the attributes of the object before */
	IS_CLASS = 2,	  /* which is a class */
};

static bool read_string(const struct python *python, struct view *view, uint64_t object,
			char ret[static MOST_TEXT])
{
	return python_read_text(view, python->string_head, object, ret, MOST_TEXT);
}

const char *python_class_at(struct python *python, struct view *view, uint64_t object)
{
	struct python_types *types = &python->types;
	uint32_t number = NOT_IN_MAP;
	uint64_t type;

	if (object % WORD == 0 && view_word(view, object + TYPE, &type))
		number = address_map_find(&types->classes->places, type);
	return number != NOT_IN_MAP ? python_types_name(types, number) : NULL;
}

static const char *class_of(struct object_path *path, uint64_t object)
{
	const char *name = python_class_at(python_of(path->space), &path->view, object);

	return name ? name : "object";
}

static void add_key(struct object_path *path, uint64_t key)
{
	const char *class_name = class_of(path, key);
	char text[MOST_TEXT];
	uint64_t name;

	if (!path->with_content)
		path_add(path, "[...]");
	else if (is_of_contexts(class_name, "ContextVar") &&
		 view_word(&path->view, key + 2 * WORD, &name) &&
		 read_string(python_of(path->space), &path->view, name, text))
		path_add(path, "[<ContextVar '%s'>]", text);
	else if (!python_has_flag(&path->view, key, TUPLE) &&
		 python_tell_value(&path->view, python_of(path->space)->string_head, key,
				   class_name, text, sizeof(text)))
		path_add(path, "[%s]", text);
	else
		path_add(path, "[<%s>]", class_name);
}

/* True if the class returns the object's target when asked for the attribute by name. */
static bool is_descriptor(struct object_path *path)
{
	uint64_t type, get = 0;

	return view_word(&path->view, path->target + TYPE, &type) &&
	       view_word(&path->view, type + TYPE_GET, &get) && get != 0 &&
	       strcmp(class_of(path, path->target), "function") != 0;
}

static void add_attribute(struct object_path *path, uint64_t name, bool is_class)
{
	char text[MOST_TEXT];

	path_add(path, is_class && is_descriptor(path) ? ".__dict__['%s']" : ".%s",
		 read_string(python_of(path->space), &path->view, name, text) ? text : "?");
}

static bool read_name(struct view *view, uint64_t address, char ret[static MOST_TEXT])
{
	uint64_t known;
	const uint8_t *bytes = view_bytes(view, address, &known);
	const void *end = bytes ? memchr(bytes, '\0', MIN(known, MOST_TEXT)) : NULL;

	if (!end)
		return false;
	memcpy(ret, bytes, (size_t)((const uint8_t *)end - bytes) + 1);
	return true;
}

/* The name of the member at that offset; also of those that `__slots__` makes. */
static bool find_member(struct python *python, struct view *view, uint64_t type, uint64_t offset,
			char ret[static MOST_TEXT])
{
	struct {
		uint64_t name, kind, offset, flags, document;
	} member;
	uint64_t place;

	if (!view_word(view, type + TYPE_MEMBERS, &place) || place == 0)
		return false;
	for (int i = 0; i < MOST_MEMBERS && view_read(view, place, &member, sizeof(member)) &&
			member.name != 0;
	     i++, place += sizeof(member))
		if (member.offset == offset)
			return read_name(view, member.name, ret);
	return false;
}

/* Find the name of a member that a function gets, as those of classes in C and Cython are. */
static bool find_getter(struct python *python, struct view *view, uint64_t type, uint64_t offset,
			char ret[static MOST_TEXT])
{
	struct {
		uint64_t name, get, set, document, closure;
	} getter;
	uint64_t place;

	if (!view_word(view, type + TYPE_GETTERS, &place) || place == 0)
		return false;
	for (int i = 0; i < MOST_MEMBERS && view_read(view, place, &getter, sizeof(getter)) &&
			getter.name != 0;
	     i++, place += sizeof(getter))
		if (getter_returns(view->image, &python->disassembler, getter.get, offset))
			return read_name(view, getter.name, ret);
	return false;
}

/*
 * How programs get from an object of the one class to one of the other; NULL: not known. In
 * angle brackets: only C code gets there.
 */
static const char *find_text(const char *source, const char *target, uint64_t offset)
{
	static const struct {
		const char *source, *target, *text; /* NULL: any */
		uint64_t offset;		    /* 0: any */
	} texts[] = {
		{ "cell", NULL, ".cell_contents" },
		{ NULL, "code", ".__code__" },
		{ "function", "tuple", ".__defaults__", 32 }, /* before 3.11 */
		{ "function", "tuple", ".__defaults__", 56 },
		{ "function", "dict", ".__kwdefaults__", 40 },
		{ "function", "dict", ".__kwdefaults__", 64 },
		{ "_asyncio.Task", "coroutine", ".get_coro()" },
		{ "_asyncio.Task", "_contextvars.Context", ".get_context()" },
		{ "_asyncio.Task", "_asyncio.Future", "._fut_waiter" },
		{ "_asyncio.Task", "asyncio.tasks._GatheringFuture", "._fut_waiter" },
		{ "traceback", "traceback", ".tb_next" },
		{ NULL, "traceback", ".__traceback__" },
		{ "traceback", "frame", ".tb_frame" },
		{ "frame", "frame", ".f_back" },
		{ "numpy.ndarray", NULL, ".base", 48 },
		{ "_queue.SimpleQueue", "list", ".<items>" },
		{ "functools._lru_cache_wrapper", "dict", ".<cache>" },
		{ "functools._lru_cache_wrapper", "functools._lru_list_elem", ".<newest>", 16 },
		{ "functools._lru_cache_wrapper", "functools._lru_list_elem", ".<oldest>", 24 },
		{ "functools._lru_list_elem", "functools._lru_list_elem", ".<older>", 16 },
		{ "functools._lru_list_elem", "functools._lru_list_elem", ".<newer>", 24 },
		{ "functools._lru_list_elem", NULL, ".<key>", 40 },
		{ "functools._lru_list_elem", NULL, ".<result>", 48 },
	};

	for (size_t i = 0; i < COUNT_OF(texts); i++)
		if ((!texts[i].source || strcmp(texts[i].source, source) == 0) &&
		    (!texts[i].target || strcmp(texts[i].target, target) == 0) &&
		    (!texts[i].offset || texts[i].offset == offset))
			return texts[i].text;
	return NULL;
}

/* The name of the word at that offset, as its class or one that this is derived from has it. */
static bool find_named(struct object_path *path, uint64_t offset, char ret[static MOST_TEXT],
		       bool (*find)(struct python *python, struct view *view, uint64_t type,
				    uint64_t offset, char ret[static MOST_TEXT]))
{
	uint64_t type = python_type_of(python_of(path->space), path->id)->address;

	for (int i = 0; i < MOST_BASES && type != 0; i++)
		if (find(python_of(path->space), &path->view, type, offset, ret))
			return true;
		else if (!view_word(&path->view, type + TYPE_BASE, &type))
			break;
	return false;
}

static void add_word(struct object_path *path, uint64_t offset)
{
	const char *text, *class_name = class_of(path, path->source);
	char name[MOST_TEXT];

	if (find_named(path, offset, name, find_member)) {
		path_add(path, ".%s", name);
		return;
	}
	text = find_text(class_name, class_of(path, path->target), offset);
	if (!text && is_of_contexts(class_name, "ContextVar") && offset == ITEMS)
		text = ".<default>";
	if (text)
		path_add(path, "%s", text);
	else if (find_named(path, offset, name, find_getter))
		path_add(path, ".%s", name);
	else
		path_add(path, ".+%#" PRIx64, offset);
}

/* The object may have a weak reference to the same target besides. */
static bool is_refused(const struct python *python, const struct object_link *link)
{
	const struct allocation_index *index = python->space.index;
	allocation_id target = allocation_find(index, link->target);

	return link->kind == LINK_WORD && target != NO_ALLOCATION &&
	       python_is_link(&python->space, allocation_find(index, link->place), target,
			      link->target, link->place);
}

/* The dict of attributes is not spoken of, unless the path ends there. */
static void begin_step(struct object_path *path, const struct object_link *link)
{
	if (path->state & IS_ATTRIBUTE) {
		path->used = path->state_used;
		path->text[path->used] = '\0';
	}
	path->state = 0;
	if (link->kind != LINK_ATTRIBUTES)
		return;
	path->state = IS_ATTRIBUTE;
	if (python_has_flag(&path->view, path->source, TYPE_OF_TYPES))
		path->state |= IS_CLASS;
	path->state_used = path->used;
	path_add(path, ".__dict__");
}

bool python_tell_step(struct object_path *path, const struct object_link *link)
{
	unsigned int before = path->state;
	struct python *python = python_of(path->space);

	if (is_refused(python, link))
		return false;
	begin_step(path, link);
	if (link->kind == LINK_ATTRIBUTE || (link->kind == LINK_KEY && (before & IS_ATTRIBUTE)))
		add_attribute(path, link->which, before & IS_CLASS);
	else if (link->kind == LINK_KEY)
		add_key(path, link->which);
	else if (link->kind == LINK_VARIABLE)
		path_add(path, "%s", frame_attribute(python_type_of(python, path->id)));
	else if (link->kind == LINK_WORD)
		add_word(path, link->number);
	return true;
}

/* Names modules. */
struct search {
	struct object_naming *naming;
	uint64_t modules; /* the address of sys.modules; 0: not found yet */
};

static bool name_module(void *data, const struct object_link *link)
{
	struct object_naming *naming = data;
	char name[MOST_TEXT];

	if (link->kind == LINK_KEY &&
	    read_string(python_of(naming->space), &naming->view, link->which, name))
		object_name(naming, link->target, "%s", name);
	return naming->error != NULL;
}

static bool find_modules(void *data, const struct object_link *link)
{
	struct search *search = data;
	char name[MOST_TEXT];

	if (link->kind == LINK_KEY &&
	    read_string(python_of(search->naming->space), &search->naming->view, link->which,
			name) &&
	    strcmp(name, "modules") == 0)
		search->modules = link->target;
	return search->modules != 0;
}

/* A module's own name may be another one than it is imported by. */
static void name_modules(struct search *search, allocation_id module)
{
	struct object_naming *naming = search->naming;
	struct python *python = python_of(naming->space);
	uint64_t object = python_object_at(python, module), text, dict;
	struct object_walk walk = object_walk_begin(naming->space, find_modules, search);
	char name[MOST_TEXT];

	if (search->modules || !view_word(&naming->view, object + MODULE_NAME, &text) ||
	    !read_string(python, &naming->view, text, name) || strcmp(name, "sys") != 0 ||
	    !view_word(&naming->view, object + MODULE_DICT, &dict))
		return;
	walk_dict(&walk, dict);
	if (!search->modules)
		return;
	walk = object_walk_begin(naming->space, name_module, naming);
	walk_dict(&walk, search->modules);
}

/* The names of all types; that of strings is larger by two words up to 3.11. */
struct error *python_learn_types(struct python *python, uint32_t *ret_module)
{
	enum { SMALLEST_OLD = 72 };
	struct python_types *types = &python->types;

	*ret_module = NOT_IN_MAP;
	for (uint32_t i = 0; i < types->list.count; i++) {
		const struct python_type *type = &types->list.items[i];

		TRY_MEMORY(python_types_name(types, i));
		python->values_are_counted |= (type->flags & INLINE_VALUES) != 0;
		if (is_named(type, "module"))
			*ret_module = i;
		if (is_named(type, "str"))
			python->string_head =
				type->size < SMALLEST_OLD ? STRING_HEAD : STRING_HEAD_OLD;
	}
	return NULL;
}

struct error *python_find_globals(struct object_naming *naming)
{
	struct python *python = python_of(naming->space);
	struct search search = { naming, 0 };
	uint32_t module;

	TRY(python_learn_types(python, &module));
	for (size_t id = 0; id < naming->named->count && module != NOT_IN_MAP; id++)
		if (python_number_of(python, id) == module + 1)
			name_modules(&search, (allocation_id)id);
	return NULL;
}

/* The state of a thread has its context, behind members that each version has elsewhere. */
static struct error *name_context(uint64_t state, void *data)
{
	enum { FIRST = 64, LAST = 512 };
	struct object_naming *naming = data;

	for (uint64_t at = FIRST; at <= LAST; at += WORD) {
		uint64_t word;
		const char *name;

		if (!view_word(&naming->view, state + at, &word))
			break;
		name = python_class_at(python_of(naming->space), &naming->view, word);
		if (name && is_of_contexts(name, "Context"))
			object_name(naming, word, "contextvars.copy_context()");
	}
	return NULL;
}

struct error *python_find_locals(struct object_naming *naming)
{
	struct python *python = python_of(naming->space);
	const struct frame_visitor visitor = { naming, object_name_frame, object_name_local };

	for (uint32_t i = 0; i < naming->space->program->thread_count; i++)
		TRY(python_visit_frames(naming->space, i, &visitor));
	return python_threads_visit(&python->threads, &python->types, naming->space->program,
				    name_context, naming);
}
