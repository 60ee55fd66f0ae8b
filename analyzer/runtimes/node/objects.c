#include "analyzer/runtimes/node/node.h"

#include "analyzer/heap/cycle.h"

/* Fields of a Map, src/objects/map.tq. */
enum {
	MAP_MORE_BITS = 15,
	IS_OF_BASE = 1 << 0,
	MAP_BITS = 16,
	IS_PROTOTYPE = 1 << 20,
	MAP_PROTOTYPE = 24,
};

/* Flags of scopes. */
enum {
	HAS_CLASS_VARIABLE = 1 << 10,
	HAS_NAME = 3 << 12,
};

void node_release(struct object_space *space)
{
	struct node *node = (struct node *)space;

	table_release(&node->maps);
}

/* Flags are a small number, in the upper half, or from V8 13 on a plain one. */
bool node_read_scope(struct v8_reader *reader, uint64_t address, struct node_scope *ret)
{
	enum { FLAGS = 8, COUNT = 28, MOST_NAMES = 75 };
	uint64_t flags;

	ret->names = address + reader->layout->scope_names;
	if (!view_word(&reader->view, address + FLAGS, &flags) ||
	    !view_read(&reader->view, address + COUNT, &ret->count, sizeof(ret->count)))
		return false;
	ret->flags = (uint32_t)(flags | flags >> 32);
	ret->has_names = ret->count < MOST_NAMES;
	return true;
}

/* The name of a function that was compiled: behind names and details of its variables. */
static bool read_scope_name(struct v8_reader *reader, uint64_t address, char *ret, size_t size)
{
	struct node_scope scope;
	uint64_t words, name;

	if (!node_read_scope(reader, address, &scope) || !(scope.flags & HAS_NAME))
		return false;
	words = (uint64_t)scope.count + (scope.has_names ? scope.count : 1) +
		((scope.flags & HAS_CLASS_VARIABLE) != 0);
	return view_word(&reader->view, scope.names + V8_WORD * words, &name) &&
	       v8_read_text(reader, name, ret, size);
}

bool node_read_shared(struct v8_reader *reader, uint64_t shared, char *ret, size_t size)
{
	const struct v8_layout *layout = reader->layout;
	struct v8_map map;
	uint64_t name;

	if (!v8_map_of(reader, shared, &map) || map.type != layout->shared_type ||
	    !view_word(&reader->view, shared - V8_STRONG + layout->name, &name) ||
	    !v8_map_of(reader, name, &map))
		return false;
	return (map.type == layout->scope_type
			? read_scope_name(reader, name - V8_STRONG, ret, size)
			: v8_read_text(reader, name, ret, size)) &&
	       ret[0];
}

/* Constructors of classes, promises and so on have types of their own. */
bool node_read_function(struct v8_reader *reader, uint64_t word, char *ret, size_t size)
{
	uint64_t shared;

	return (word & V8_TAGS) == V8_STRONG &&
	       view_word(&reader->view, word - V8_STRONG + reader->layout->shared, &shared) &&
	       node_read_shared(reader, shared, ret, size);
}

bool node_read_file(struct v8_reader *reader, uint64_t script, char *ret, size_t size)
{
	const struct v8_layout *layout = reader->layout;
	struct v8_map map;
	uint64_t name;

	return v8_map_of(reader, script, &map) && map.type == layout->script_type &&
	       view_word(&reader->view, script - V8_STRONG + layout->script_name, &name) &&
	       v8_read_text(reader, name, ret, size) &&
	       (ret[0] == '/' || strncmp(ret, "file:", 5) == 0);
}

/* A map that was derived from another has that where the first has the constructor. */
static bool read_mapped_constructor(struct v8_reader *reader, uint64_t map, char *ret, size_t size)
{
	struct cycle_search search = { .power = 1 };
	struct v8_map next;
	uint64_t word;

	/* A damaged map may be derived from itself. */
	while (!cycle_closes(&search, map) && v8_step(reader)) {
		if (!view_word(&reader->view, map + reader->layout->constructor, &word) ||
		    !v8_map_of(reader, word, &next))
			return false;
		if (next.type != reader->layout->map_type)
			return node_read_function(reader, word, ret, size);
		map = word - V8_STRONG;
	}
	return false;
}

struct constructor_search {
	struct v8_reader *reader;
	char *ret;
	size_t size;
	bool is_found;
};

static bool check_constructor(void *data, uint64_t name, uint64_t value)
{
	struct constructor_search *search = data;
	char text[sizeof("constructor") + 1];

	if (!v8_read_text(search->reader, name, text, sizeof(text)) ||
	    strcmp(text, "constructor") != 0)
		return false;
	search->is_found = node_read_function(search->reader, value, search->ret, search->size);
	return true;
}

/*
 * The map has the constructor of the class that an object's class is derived from at the top: which
 * that is itself, the prototype says. A prototype is an Object, or a Function.
 */
static bool read_constructor(struct v8_reader *reader, uint64_t map, char *ret, size_t size)
{
	struct constructor_search search = { reader, ret, size, false };
	uint64_t prototype;
	uint32_t bits;
	uint8_t more;

	if (!view_read(&reader->view, map + MAP_MORE_BITS, &more, sizeof(more)) ||
	    !view_read(&reader->view, map + MAP_BITS, &bits, sizeof(bits)))
		return false;
	if (bits & IS_PROTOTYPE)
		return read_mapped_constructor(reader, map, ret, size) &&
		       strcmp(ret, "Function") == 0;
	if ((more & IS_OF_BASE) || !view_word(&reader->view, map + MAP_PROTOTYPE, &prototype) ||
	    (prototype & V8_TAGS) != V8_STRONG)
		return read_mapped_constructor(reader, map, ret, size);
	node_visit_properties(reader, prototype - V8_STRONG, check_constructor, &search);
	return search.is_found || read_mapped_constructor(reader, map, ret, size);
}

/* Objects of JavaScript have types above all others; without a constructor, they are Objects. */
static struct error *find_class(struct node *node, struct v8_reader *reader,
				const struct v8_map *map, uint32_t *ret)
{
	char constructor[NODE_MOST_NAME];
	const char *name = "(other)";

	*ret = address_map_find(&node->maps, map->address);
	if (*ret != NOT_IN_MAP)
		return NULL;
	if (map->type >= V8_TYPES)
		name = read_constructor(reader, map->address, constructor, sizeof(constructor))
			       ? constructor
		       : map->type == reader->layout->function_type ? "Function"
								    : "Object";
	else if (reader->layout->labels[map->type])
		name = reader->layout->labels[map->type];
	TRY(object_classes_name(&node->space.classes, &node->space.texts, name, ret));
	return address_map_add(&node->maps, map->address, *ret);
}

static struct error *find_objects_in(struct node *node, struct v8_reader *reader,
				     const struct v8_chunk *chunk)
{
	const struct allocation_index *index = node->space.index;
	size_t hint = 0;

	for (uint64_t at = chunk->start; at < chunk->end;) {
		allocation_id id = allocation_find(index, at);
		struct memory_range range;
		struct v8_map map;
		uint64_t word;
		uint32_t class;

		if (id == NO_ALLOCATION)
			break;
		range = allocation_range_near(index, id, &hint);
		if (range.start != at || range.end > chunk->end)
			break;
		if (bitmap_get(allocation_used(index), id) && view_word(&reader->view, at, &word) &&
		    v8_read_map(reader, word, &map)) {
			TRY(find_class(node, reader, &map, &class));
			TRY(object_classes_set(&node->space.classes, id, class));
		}
		at = range.end;
	}
	return NULL;
}

struct error *node_find_objects(struct object_space *space, struct debug *debug)
{
	struct node *node = (struct node *)space;
	struct v8_reader reader = { { space->image } };
	const struct heap *heap;

	TRY(heaps_find(space->heaps, &allocator_v8, &heap));
	if (!heap)
		return NULL;
	node->parts = v8_parts_of(heap);
	reader.layout = &node->parts->layout;
	arrays_use(space->account, &node->maps);
	TRY(object_classes_init(&space->classes, allocation_count(space->index), space->account));
	array_for_each(chunk, &node->parts->chunks)
		if (v8_is_walked(chunk))
			TRY(find_objects_in(node, &reader, chunk));
	space->has_objects = space->classes.list.count > 0;
	return NULL;
}

/*
 * The collector does not follow weak addresses. Others than tagged ones are of its own bookkeeping:
 * where a chunk's objects begin, which object has which number in heap snapshots. In a block, one
 * that is not of an object's start was left by what stood where the object is now; a stack may have
 * one into an object.
 */
bool node_is_link(const struct object_space *space, allocation_id source, allocation_id target,
		  uint64_t word, uint64_t place)
{
	if (!object_class_of(space, target))
		return false;
	if (source == NO_ALLOCATION || (word & V8_TAGS) == 0)
		return (word & V8_TAGS) == 0;
	return (word & ~V8_TAGS) != allocation_start(space->index, target) ||
	       ((word & V8_TAGS) == V8_WEAK && object_class_of(space, source));
}
