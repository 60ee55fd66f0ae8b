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
#include "analyzer/runtimes/path_text.h"
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
	LINK_VARIABLE,	 /* of a function that waits */
	LINK_WORD,	 /* of the object, at an offset */
	LINK_CLASS,
};

struct link {
	enum link_kind kind;
	uint64_t target;  /* the address of an object, perhaps */
	uint64_t place;	  /* of the word that has it; 0: not known */
	uint64_t which;	  /* the key's address, the number, or the offset */
	const char *name; /* of a variable */
};

/* Goes over the links of objects until follow() returns true. */
struct walk {
	struct python *python;
	struct view view;
	bool (*follow)(void *data, const struct link *link);
	void *data;
	struct budget steps; /* in a damaged core, all lists may share their items */
	bool is_over;
	struct error *error;
};

static struct walk walk_begin(struct python *python,
			      bool (*follow)(void *data, const struct link *link), void *data)
{
	enum { MOST_STEPS = 1 << 25 };

	return (struct walk){ python, { python->space.image }, follow, data, { MOST_STEPS } };
}

static void emit_link(struct walk *walk, const struct link *link)
{
	if (!walk->is_over && link->target != 0)
		walk->is_over = walk->follow(walk->data, link);
	walk->is_over = walk->is_over || !budget_take(&walk->steps);
}

static void emit(struct walk *walk, enum link_kind kind, uint64_t place, uint64_t target,
		 uint64_t which)
{
	emit_link(walk, &(struct link){ kind, target & ~TAG, place, which });
}

/* The object that an allocation is, if it is at that address. */
static allocation_id find_object(const struct python *python, uint64_t address)
{
	allocation_id id = allocation_find(python->space.index, address);

	return id != NO_ALLOCATION && python_type_of(python, id) &&
			       python_object_at(python, id) == address
		       ? id
		       : NO_ALLOCATION;
}

static void walk_entries(struct walk *walk, const struct python_entries *entries)
{
	for (uint64_t i = 0; i < entries->count && !walk->is_over; i++) {
		uint64_t place = entries->first_key + i * entries->step, pair[2];

		if (!view_read(&walk->view, place, pair, sizeof(pair)))
			return;
		if (pair[1] != 0)
			emit(walk, LINK_KEY, place + WORD, pair[1], pair[0]);
		if (pair[1] != 0)
			emit(walk, LINK_KEYS, place, pair[0], 0);
	}
}

/* Values begin with how many they are from 3.13 on. */
static void walk_values(struct walk *walk, enum link_kind kind,
			const struct python_entries *entries, uint64_t values)
{
	uint64_t value, key;

	if (walk->python->values_are_counted)
		values += WORD;
	for (uint64_t i = 0; i < entries->count && !walk->is_over; i++)
		if (view_word(&walk->view, values + WORD * i, &value) && value != 0 &&
		    view_word(&walk->view, entries->first_key + i * entries->step, &key))
			emit(walk, kind, values + WORD * i, value, key);
}

static void walk_dict(struct walk *walk, uint64_t dict)
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

static void walk_items(struct walk *walk, uint64_t object, bool is_list)
{
	uint64_t first = object + ITEMS, count, item;

	if (!view_word(&walk->view, object + LENGTH, &count) || count > MOST_ITEMS ||
	    (is_list && !view_word(&walk->view, first, &first)))
		return;
	for (uint64_t i = 0; i < count && !walk->is_over; i++) {
		if (!view_word(&walk->view, first + WORD * i, &item))
			return;
		emit(walk, LINK_ITEM, first + WORD * i, item, i);
	}
}

static void walk_set(struct walk *walk, uint64_t set)
{
	uint64_t mask, table, element;

	if (!view_word(&walk->view, set + SET_MASK, &mask) || mask > MOST_ITEMS ||
	    !view_word(&walk->view, set + SET_TABLE, &table))
		return;
	for (uint64_t i = 0; i <= mask && !walk->is_over; i++) {
		if (!view_word(&walk->view, table + 2 * WORD * i, &element))
			return;
		emit(walk, LINK_ELEMENT, table + 2 * WORD * i, element, 0);
	}
}

/* Blocks of 64 items, each between links to the one before and the next. */
static void walk_deque(struct walk *walk, uint64_t deque)
{
	enum { BLOCK_ITEMS = 64 };
	uint64_t count, block, at, item;

	if (!view_word(&walk->view, deque + LENGTH, &count) || count > MOST_ITEMS ||
	    !view_word(&walk->view, deque + BLOCKS, &block) ||
	    !view_word(&walk->view, deque + FIRST_ITEM, &at) || at >= BLOCK_ITEMS)
		return;
	for (uint64_t i = 0; i < count && !walk->is_over; i++) {
		if (!view_word(&walk->view, block + WORD * (1 + at), &item))
			return;
		emit(walk, LINK_ITEM, block + WORD * (1 + at), item, i);
		if (++at < BLOCK_ITEMS)
			continue;
		at = 0;
		if (!view_word(&walk->view, block + WORD * (1 + BLOCK_ITEMS), &block))
			return;
	}
}

static bool is_dict(struct walk *walk, uint64_t object)
{
	return python_has_flag(&walk->view, object, DICT);
}

/* Attributes without a dict: values that the word before an object leads to, or in the object. */
static void walk_attributes(struct walk *walk, const struct python_type *type, uint64_t values)
{
	struct python_entries entries;
	uint64_t keys;

	/* 3.12 marks the address of values by the one before it. */
	if (values != 0 && python_find_shared_keys(&walk->view, type->address, &keys, &entries))
		walk_values(walk, LINK_ATTRIBUTE, &entries, (values + TAG) & ~TAG);
}

/* Walk the words before the object, without the collector's links. */
static void walk_head(struct walk *walk, const struct python_type *type, uint64_t start,
		      uint64_t object)
{
	for (uint64_t at = start; at + LINKS < object; at += WORD) {
		uint64_t word;

		if (!view_word(&walk->view, at, &word))
			return;
		if (is_dict(walk, word))
			emit(walk, LINK_ATTRIBUTES, at, word, 0);
		else if (type->flags & TYPE_MANAGED_DICT)
			walk_attributes(walk, type, word);
	}
}

/* The dict at that offset of an object has its attributes. */
static void walk_attribute_dict(struct walk *walk, uint64_t object, uint64_t offset)
{
	uint64_t dict;

	if (view_word(&walk->view, object + offset, &dict) && is_dict(walk, dict))
		emit(walk, LINK_ATTRIBUTES, object + offset, dict, 0);
}

/* Behind its size, an allocation may have anything; a frame in it has its variables. */
static void walk_words(struct walk *walk, const struct python_type *type, uint64_t object)
{
	uint64_t size = type->kind == PYTHON_GENERATOR
				? python_frames_start(&walk->python->threads, type)
				: type->size;

	for (uint64_t at = 2 * WORD; at + WORD <= size && !walk->is_over; at += WORD) {
		uint64_t word;

		if (!view_word(&walk->view, object + at, &word))
			return;
		emit(walk, LINK_WORD, object + at, word, at);
	}
}

static bool is_named(const struct python_type *type, const char *name)
{
	return type->name && strcmp(type->name, name) == 0;
}

static void emit_variable(void *data, const struct runtime_local *local)
{
	emit_link(data, &(struct link){ LINK_VARIABLE, local->address, .name = local->name });
}

/* The name of the attribute for the frame of such an object; NULL: it has none. */
static const char *frame_attribute(const struct python_type *type)
{
	return is_named(type, "generator")	   ? "gi_frame"
	       : is_named(type, "coroutine")	   ? "cr_frame"
	       : is_named(type, "async_generator") ? "ag_frame"
						   : NULL;
}

static void walk_frame(struct walk *walk, uint64_t object, uint64_t size)
{
	const struct frame_visitor visitor = { walk, NULL, emit_variable };

	walk->error = python_frames_visit_suspended(&walk->python->threads, &walk->python->types,
						    object, size, &visitor);
}

static void walk_contents(struct walk *walk, const struct python_type *type, uint64_t object)
{
	if (type->flags & DICT)
		walk_dict(walk, object);
	else if (type->flags & (LIST | TUPLE))
		walk_items(walk, object, (type->flags & LIST) != 0);
	else if (is_named(type, "set") || is_named(type, "frozenset"))
		walk_set(walk, object);
	else if (is_named(type, "collections.deque"))
		walk_deque(walk, object);
}

/* Types may move meanwhile. */
static void walk_object(struct walk *walk, allocation_id id)
{
	const struct python_type copy = *python_type_of(walk->python, id), *type = &copy;
	const struct allocation_index *index = walk->python->space.index;
	uint64_t object = python_object_at(walk->python, id), start = allocation_start(index, id);
	uint64_t dict_offset = 0;

	if (type->flags & WITHOUT_LINKS)
		return;
	walk_contents(walk, type, object);
	if (frame_attribute(type))
		walk_frame(walk, object, start + allocation_size(index, id) - object);
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
	emit(walk, LINK_CLASS, object + TYPE, type->address, 0);
}

struct visiting {
	const struct python *python;
	object_visitor *visit;
	void *data;
	struct error *error;
};

static bool visit_link(void *data, const struct link *link)
{
	struct visiting *visiting = data;
	allocation_id id = find_object(visiting->python, link->target);

	if (id != NO_ALLOCATION)
		visiting->error = visiting->visit(visiting->data, id, link->place);
	return visiting->error != NULL;
}

struct error *python_visit_references(struct object_space *space, allocation_id id,
				      object_visitor *visit, void *data)
{
	struct python *python = (struct python *)space;
	struct visiting visiting = { python, visit, data, NULL };
	struct walk walk = walk_begin(python, visit_link, &visiting);

	walk.steps = python->steps;
	walk_object(&walk, id);
	python->steps = walk.steps;
	/* Each ends the walk. */
	return visiting.error ? visiting.error : walk.error;
}

/* Writes the steps of a path. */
struct telling {
	struct python *python;
	struct view view;
	bool with_content;
	bool is_attribute; /* the dict at hand has the attributes of the object before */
	bool is_class;	   /* which is a class */
	uint64_t source, target;
	const struct python_type *type; /* the source's */
	struct path_text path;
};

static bool read_string(const struct python *python, struct view *view, uint64_t object,
			char ret[static MOST_TEXT])
{
	return python_read_text(view, python->string_head, object, ret, MOST_TEXT);
}

static const char *class_of(struct telling *telling, uint64_t object)
{
	struct python_types *types = &telling->python->types;
	uint32_t number = NOT_IN_MAP;
	uint64_t type;
	const char *name = NULL;

	if (object % WORD == 0 && view_word(&telling->view, object + TYPE, &type))
		number = address_map_find(&types->classes->places, type);
	if (number != NOT_IN_MAP)
		name = python_types_name(types, number);
	return name ? name : "object";
}

static void add_key(struct telling *telling, uint64_t key)
{
	const char *class_name = class_of(telling, key);
	char text[MOST_TEXT];

	if (!telling->with_content)
		path_text_add(&telling->path, "[...]");
	else if (!python_has_flag(&telling->view, key, TUPLE) &&
		 python_tell_value(&telling->view, telling->python->string_head, key, class_name,
				   text, sizeof(text)))
		path_text_add(&telling->path, "[%s]", text);
	else
		path_text_add(&telling->path, "[<%s>]", class_name);
}

/* True if the class returns the object's target when asked for the attribute by name. */
static bool is_descriptor(struct telling *telling)
{
	uint64_t type, get = 0;

	return view_word(&telling->view, telling->target + TYPE, &type) &&
	       view_word(&telling->view, type + TYPE_GET, &get) && get != 0 &&
	       strcmp(class_of(telling, telling->target), "function") != 0;
}

static void add_attribute(struct telling *telling, uint64_t name, bool is_class)
{
	char text[MOST_TEXT];

	path_text_add(&telling->path,
		      is_class && is_descriptor(telling) ? ".__dict__['%s']" : ".%s",
		      read_string(telling->python, &telling->view, name, text) ? text : "?");
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
static bool find_member(struct view *view, uint64_t type, uint64_t offset,
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

/* How programs get from an object of the one class to one of the other; NULL: not known. */
static const char *find_text(const char *source, const char *target)
{
	static const struct {
		const char *source, *target, *text; /* NULL: any */
	} texts[] = {
		{ "cell", NULL, ".cell_contents" },
		{ NULL, "code", ".__code__" },
		{ "_asyncio.Task", "coroutine", ".get_coro()" },
		{ "_asyncio.Task", "_contextvars.Context", ".get_context()" },
		{ NULL, "traceback", ".__traceback__" },
	};

	for (size_t i = 0; i < COUNT_OF(texts); i++)
		if ((!texts[i].source || strcmp(texts[i].source, source) == 0) &&
		    (!texts[i].target || strcmp(texts[i].target, target) == 0))
			return texts[i].text;
	return NULL;
}

static void add_word(struct telling *telling, uint64_t offset)
{
	uint64_t type = telling->type->address;
	const char *text;
	char name[MOST_TEXT];

	for (int i = 0; i < MOST_BASES && type != 0; i++) {
		if (find_member(&telling->view, type, offset, name)) {
			path_text_add(&telling->path, ".%s", name);
			return;
		}
		if (!view_word(&telling->view, type + TYPE_BASE, &type))
			break;
	}
	text = find_text(class_of(telling, telling->source), class_of(telling, telling->target));
	if (text)
		path_text_add(&telling->path, "%s", text);
	else
		path_text_add(&telling->path, ".+%#" PRIx64, offset);
}

/* The object may have a weak reference to the same target besides. */
static bool is_refused(const struct python *python, const struct link *link)
{
	const struct allocation_index *index = python->space.index;

	return link->kind == LINK_WORD &&
	       python_is_link(&python->space, allocation_find(index, link->place),
			      allocation_find(index, link->target), link->target, link->place);
}

static bool tell_link(void *data, const struct link *link)
{
	struct telling *telling = data;
	bool is_attribute = telling->is_attribute, is_class = telling->is_class;

	if (link->target != telling->target || is_refused(telling->python, link))
		return false;
	telling->is_attribute = link->kind == LINK_ATTRIBUTES;
	telling->is_class = telling->is_attribute &&
			    python_has_flag(&telling->view, telling->source, TYPE_OF_TYPES);
	if (link->kind == LINK_ATTRIBUTE || (link->kind == LINK_KEY && is_attribute))
		add_attribute(telling, link->which, is_class);
	else if (link->kind == LINK_KEY)
		add_key(telling, link->which);
	else if (link->kind == LINK_KEYS)
		path_text_add(&telling->path, ".keys()");
	else if (link->kind == LINK_ITEM)
		path_text_add(&telling->path, "[%" PRIu64 "]", link->which);
	else if (link->kind == LINK_ELEMENT)
		path_text_add(&telling->path, "{...}");
	else if (link->kind == LINK_VARIABLE)
		path_text_add(&telling->path, ".%s.f_locals['%s']", frame_attribute(telling->type),
			      link->name);
	else if (link->kind == LINK_WORD)
		add_word(telling, link->which);
	else if (link->kind == LINK_CLASS)
		path_text_add(&telling->path, ".__class__");
	return true;
}

static void tell_name(struct telling *telling, allocation_id id)
{
	const struct python *python = telling->python;

	for (size_t i = 0; i < python->names.count; i++)
		if (python->names.items[i].id == id) {
			path_text_add(&telling->path, "%s", python->names.items[i].text);
			return;
		}
}

void python_tell_path(struct object_space *space, const allocation_id *ids, size_t count,
		      bool with_content, char *ret, size_t size)
{
	struct python *python = (struct python *)space;
	struct telling telling = {
		.python = python,
		.view = { python->space.image },
		.with_content = with_content,
		.path = { ret, size, 0 },
	};

	ret[0] = '\0';
	tell_name(&telling, ids[0]);
	for (size_t i = 0; i + 1 < count; i++) {
		const struct python_type type = *python_type_of(python, ids[i]);
		struct walk walk = walk_begin(python, tell_link, &telling);

		telling.source = python_object_at(python, ids[i]);
		telling.type = &type;
		telling.target = python_object_at(python, ids[i + 1]);
		walk_object(&walk, ids[i]);
		error_destroy(walk.error);
	}
	if (telling.is_attribute)
		path_text_add(&telling.path, ".__dict__");
}

/* Collects named objects: modules, and targets of variables of running functions. */
struct gathering {
	struct python *python;
	struct view view;
	struct bitmap *names;
	uint64_t modules; /* the address of sys.modules; 0: not found yet */
	char function[MOST_TEXT];
	struct error *error;
};

static void gather(struct gathering *gathering, uint64_t object, const char *scope,
		   const char *text)
{
	struct python *python = gathering->python;
	allocation_id id = find_object(python, object);
	struct python_name name = { .id = id };

	if (gathering->error || id == NO_ALLOCATION || bitmap_get(gathering->names, id))
		return;
	name.text = name_pool_print(&python->types.names, "%s%s", scope, text);
	gathering->error = name.text ? array_append(&python->names, name) : &error_no_memory;
	bitmap_set(gathering->names, id);
}

static void enter_frame(void *data, const struct runtime_frame *frame)
{
	struct gathering *gathering = data;

	snprintf(gathering->function, sizeof(gathering->function), "%s.<locals>.",
		 frame->function ? frame->function : "?");
}

static void gather_local(void *data, const struct runtime_local *local)
{
	struct gathering *gathering = data;

	gather(gathering, local->address, gathering->function, local->name);
}

static bool gather_module(void *data, const struct link *link)
{
	struct gathering *gathering = data;
	char name[MOST_TEXT];

	if (link->kind == LINK_KEY &&
	    read_string(gathering->python, &gathering->view, link->which, name))
		gather(gathering, link->target, "", name);
	return gathering->error != NULL;
}

static bool find_modules(void *data, const struct link *link)
{
	struct gathering *gathering = data;
	char name[MOST_TEXT];

	if (link->kind == LINK_KEY &&
	    read_string(gathering->python, &gathering->view, link->which, name) &&
	    strcmp(name, "modules") == 0)
		gathering->modules = link->target;
	return gathering->modules != 0;
}

/* A module's own name may be another one than it is imported by. */
static void gather_modules(struct gathering *gathering, allocation_id module)
{
	struct python *python = gathering->python;
	uint64_t object = python_object_at(python, module), text, dict;
	struct walk walk = walk_begin(python, find_modules, gathering);
	char name[MOST_TEXT];

	if (gathering->modules || !view_word(&gathering->view, object + MODULE_NAME, &text) ||
	    !read_string(python, &gathering->view, text, name) || strcmp(name, "sys") != 0 ||
	    !view_word(&gathering->view, object + MODULE_DICT, &dict))
		return;
	walk_dict(&walk, dict);
	if (!gathering->modules)
		return;
	walk = walk_begin(python, gather_module, gathering);
	walk_dict(&walk, gathering->modules);
}

/* The names of all types; that of strings is larger by two words up to 3.11. */
static struct error *learn_types(struct python *python, uint32_t *ret_module)
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

struct error *python_find_globals(struct object_space *space, struct bitmap *ret)
{
	struct python *python = (struct python *)space;
	const struct runtime_context *context = &python->space.context;
	struct gathering gathering = { python, { context->image }, ret };
	uint32_t module;

	python->names.count = 0;
	python->steps.left = context->image->size; /* eight for each word */
	TRY(learn_types(python, &module));
	for (size_t id = 0; id < ret->count && module != NOT_IN_MAP; id++)
		if (python_number_of(python, id) == module + 1)
			gather_modules(&gathering, (allocation_id)id);
	return gathering.error;
}

struct error *python_find_locals(struct object_space *space, struct bitmap *ret)
{
	struct python *python = (struct python *)space;
	struct gathering gathering = { python, { python->space.image }, ret };
	const struct frame_visitor visitor = { &gathering, enter_frame, gather_local };

	for (uint32_t i = 0; i < python->space.program->thread_count && !gathering.error; i++)
		TRY(python_visit_frames(space, i, &visitor));
	return gathering.error;
}
