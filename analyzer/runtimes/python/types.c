#include "analyzer/runtimes/python/types.h"

#include "analyzer/base/list.h"
#include "analyzer/base/macros.h"

#include <inttypes.h>
#include <string.h>

enum {
	WORD = 8,
	/* Fields of a type. */
	NAME = 24,
	SIZE = 32,
	ITEM = 40,
	FLAGS = 168,
	BASE = 256,
	DICT = 264,
	ORDER = 344, /* in which members are looked for: a tuple of types, itself the first */

	MOST_SIZE = 1 << 20,
	MOST_BASES = 64,
	MOST_NAME = 200,
	MOST_STEPS = 1 << 24,
};

static const uint64_t TYPE_OF_TYPES = UINT64_C(1) << 31;

void python_types_deinit(struct python_types *types)
{
	array_release(&types->list);
	name_pool_deinit(&types->names);
}

/* Read a type. */
static bool read_type(struct view *view, uint64_t address, struct python_type *ret)
{
	*ret = (struct python_type){ .address = address };
	return view_word(view, address + SIZE, &ret->size) &&
	       view_word(view, address + ITEM, &ret->item) && ret->item <= MOST_SIZE &&
	       view_word(view, address + FLAGS, &ret->flags) && (ret->flags & TYPE_READY) &&
	       ret->size >= 2 * WORD && ret->size <= MOST_SIZE;
}

/* True if `type` is there: it inherits from `object`, which inherits from nothing. */
static bool is_root(struct view *view, uint64_t place, uint64_t word, void *data)
{
	struct python_type root, object;
	uint64_t base, type, end, address = place - WORD;

	return word == address && read_type(view, address, &root) && (root.flags & TYPE_OF_TYPES) &&
	       view_word(view, address + BASE, &base) && base % WORD == 0 &&
	       view_word(view, base + WORD, &type) && type == address &&
	       read_type(view, base, &object) && object.size == 2 * WORD &&
	       view_word(view, base + BASE, &end) && end == 0;
}

struct error *python_types_init(struct python_types *types, const struct runtime_context *context,
				struct object_classes *classes)
{
	uint64_t place = module_data_search(context->image, context->program, is_root, NULL);

	*types = (struct python_types){
		.image = context->image,
		.classes = classes,
		.list.memory.account = context->account,
		.steps = { MOST_STEPS },
		.root = place ? place - WORD : 0,
	};
	return NULL;
}

/* True if the type at address inherits from `type`. */
static bool is_metatype(const struct python_types *types, struct view *view, uint64_t address)
{
	for (int i = 0; i < MOST_BASES && address != types->root; i++)
		if (address == 0 || address % WORD != 0 ||
		    !view_word(view, address + BASE, &address))
			return false;
	return address == types->root;
}

/* Copy the type's own name, which is UTF-8: what could not be printed is another thing. */
static bool read_name(const struct image *image, uint64_t type, char ret[MOST_NAME + 1])
{
	uint64_t address;
	size_t length = 0;

	if (!image_read_u64(image, type + NAME, &address))
		return false;
	while (length < MOST_NAME && image_read(image, address + length, &ret[length], 1) &&
	       (unsigned char)ret[length] > ' ')
		length++;
	if (length == MOST_NAME || ret[length] != '\0')
		return false;
	return length > 0;
}

static enum python_kind kind_of_name(const char *name)
{
	static const struct {
		const char *name;
		enum python_kind kind;
	} kinds[] = {
		{ "dict", PYTHON_DICT },
		{ "set", PYTHON_SET },
		{ "frozenset", PYTHON_SET },
		{ "collections.deque", PYTHON_DEQUE },
		{ "generator", PYTHON_GENERATOR },
		{ "coroutine", PYTHON_GENERATOR },
		{ "async_generator", PYTHON_GENERATOR },
		{ "collections.OrderedDict", PYTHON_ORDERED },
		{ "frame", PYTHON_FRAME },
		{ "code", PYTHON_CODE },
		{ "bytearray", PYTHON_BYTEARRAY },
		{ "array.array", PYTHON_ARRAY },
		{ "numpy.ndarray", PYTHON_NUMBERS },
		{ "_io.StringIO", PYTHON_TEXT_BUFFER },
		{ "_io.BufferedReader", PYTHON_FILE_BUFFER },
		{ "_io.BufferedWriter", PYTHON_FILE_BUFFER },
		{ "_io.BufferedRandom", PYTHON_FILE_BUFFER },
	};
	static const char weak[] = "weak"; /* weakref.ReferenceType, weakproxy */

	for (size_t i = 0; i < COUNT_OF(kinds); i++)
		if (strcmp(name, kinds[i].name) == 0)
			return kinds[i].kind;
	return strncmp(name, weak, strlen(weak)) == 0 ? PYTHON_WEAK : PYTHON_OTHER;
}

static enum python_kind kind_of_sized(const char *name, uint64_t size)
{
	enum { DICT_WITH_VERSION = 48 };
	enum python_kind kind = kind_of_name(name);

	return kind == PYTHON_DICT && size != DICT_WITH_VERSION ? PYTHON_OTHER : kind;
}

/*
 * The first that it inherits from that the compiler made decides. Many of these are made on the
 * heap from 3.12 on, with their module's name, which types of programs do not have.
 */
static enum python_kind kind_of(const struct python_types *types, struct view *view,
				uint64_t address)
{
	char name[MOST_NAME + 1];
	struct python_type type;

	for (int i = 0; i < MOST_BASES && read_type(view, address, &type); i++) {
		bool is_named = read_name(types->image, address, name);

		if (is_named && (!(type.flags & TYPE_HEAP) || strchr(name, '.')))
			return kind_of_sized(name, type.size);
		if (!(type.flags & TYPE_HEAP) || !view_word(view, address + BASE, &address))
			break;
	}
	return PYTHON_OTHER;
}

struct error *python_types_know(struct python_types *types, struct view *view, uint64_t address,
				uint32_t *ret)
{
	uint32_t number = address_map_find(&types->classes->places, address);
	struct python_type type;
	uint64_t metatype;

	*ret = number;
	if (number != NOT_IN_MAP || address % WORD != 0 || address == 0 ||
	    !view_word(view, address + WORD, &metatype) || !is_metatype(types, view, metatype) ||
	    !read_type(view, address, &type))
		return NULL;
	type.kind = kind_of(types, view, address);
	TRY(object_classes_know(types->classes, address, ret));
	return array_append(&types->list, type);
}

static bool is_printable(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	return length > 0;
}

/*
 * Copy the text of a string of ASCII alone: it stands behind the head, of 40 bytes from 3.12 on, 48
 * before; of 36 in 2.7.
 */
static bool read_string(const struct image *image, uint64_t object, char ret[MOST_NAME + 1])
{
	static const unsigned int heads[] = { 40, 48, 36 };
	enum { LENGTH = 16 };
	uint64_t length;

	if (object % WORD != 0 || !image_read_u64(image, object + LENGTH, &length) ||
	    length > MOST_NAME)
		return false;
	for (size_t i = 0; i < COUNT_OF(heads); i++)
		if (image_read(image, object + heads[i], ret, length + 1) && ret[length] == '\0' &&
		    is_printable(ret, length))
			return true;
	return false;
}

/*
 * Find the value of the key "__module__" in a table of a dict: whatever the version, it stands
 * right behind the key.
 */
static bool find_module(struct python_types *types, uint64_t table, char ret[MOST_NAME + 1])
{
	enum { MOST_WORDS = 4096 };
	const struct image *image = types->image;
	struct view view = { image };
	uint64_t key, value;

	for (uint64_t i = 0; i < MOST_WORDS && budget_take(&types->steps) &&
			     view_word(&view, table + WORD * i, &key);
	     i++)
		if (key != 0 && read_string(image, key, ret) && strcmp(ret, "__module__") == 0)
			return view_word(&view, table + WORD * (i + 1), &value) &&
			       read_string(image, value, ret);
	return false;
}

static bool read_module(struct python_types *types, uint64_t type, char ret[MOST_NAME + 1])
{
	/* Offsets of a dict's table: in 3, and in 2.7. */
	static const unsigned int places[] = { 32, 40 };
	uint64_t dict, table;

	if (!image_read_u64(types->image, type + DICT, &dict) || dict == 0)
		return false;
	for (size_t i = 0; i < COUNT_OF(places); i++)
		if (image_read_u64(types->image, dict + places[i], &table) && table % WORD == 0 &&
		    find_module(types, table, ret))
			return true;
	return false;
}

/* True if the names of the module's types are known without the module's. */
static bool is_builtin(const char *module)
{
	return strcmp(module, "builtins") == 0 || strcmp(module, "__builtin__") == 0;
}

const char *python_types_name(struct python_types *types, uint32_t number)
{
	struct python_type *type = &types->list.items[number];
	char name[MOST_NAME + 1] = "", module[MOST_NAME + 1] = "";

	if (type->name)
		return type->name;
	type->is_named = read_name(types->image, type->address, name);
	if (!type->is_named)
		type->name = name_pool_print(&types->names, "type@%#" PRIx64, type->address);
	else if (strchr(name, '.') || !(type->flags & TYPE_HEAP) ||
		 !read_module(types, type->address, module) || is_builtin(module))
		type->name = name_pool_print(&types->names, "%s", name);
	else
		type->name = name_pool_print(&types->names, "%s.%s", module, name);
	return type->name;
}

bool python_types_visit_bases(struct python_types *types, uint32_t number,
			      bool (*visit)(void *data, const char *name), void *data)
{
	enum { COUNT = 16, ITEMS = 24 };
	struct view view = { types->image };
	uint64_t order, count, base;
	bool ended = false;

	if (!view_word(&view, types->list.items[number].address + ORDER, &order) || order == 0 ||
	    !view_word(&view, order + COUNT, &count) || count > MOST_BASES)
		return false;
	for (uint64_t i = 1; i < count && !ended; i++) {
		uint32_t known = NOT_IN_MAP;
		const char *name;

		if (view_word(&view, order + ITEMS + WORD * i, &base))
			known = address_map_find(&types->classes->places, base);
		name = known == NOT_IN_MAP ? NULL : python_types_name(types, known);
		ended = name && visit(data, name);
	}
	return ended;
}
