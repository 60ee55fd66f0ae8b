/*
 * How a program in JavaScript reaches its objects: "globalThis.users.get('anna').orders[3]".
 *
 *	object		| map | properties | elements | ...
 *	Map, Set	| map | properties | elements | table |
 *	view		| map | properties | elements | buffer | ...
 *	Context		| map | length | scope | previous | variables ...
 *	table		| map | length | count | deleted | buckets | ... | entries ...
 *
 * An entry of a Map's table is a key, a value and a link, of a Set's a key and a link: src/objects/
 * ordered-hash-table.h and contexts.h of V8 10.2 and 11.3. Names are the global object, and the
 * scope of a script of its own, a module of Node.js, by the file's name.
 */
#include "analyzer/base/macros.h"
#include "analyzer/runtimes/node/node.h"
#include "analyzer/runtimes/object_values.h"

#include <inttypes.h>

enum {
	MAP_VALUES = 9, /* the words before the values */
	MAP_MORE_BITS = 15,
	ELEMENTS_SHIFT = 2,
	LENGTH = 8,
	ITEMS = 16, /* of arrays and contexts */
	ELEMENTS = 16,
	TABLE = 24,
	HAS_EXTENSION = 1 << 26, /* of a scope */
	FIRST_NUMBER = 4,	 /* items before the entries of a table by number */
	NUMBER_ENTRY = 3,
	BUCKETS = 3,
	MOST_KEY = 80,
};

enum step {
	STEP_PROPERTY,
	STEP_INDEX,
	STEP_ENTRY,
	STEP_MEMBER,
	STEP_VARIABLE,
	STEP_CLOSURE,
	STEP_BUFFER,
	STEP_INSIDE, /* a word of V8's own, at that offset; or an item of its array */
	STEP_INSIDE_ITEM,
	STEP_HELD,
};

const struct object_step node_steps[] = {
	[STEP_INDEX] = { "[#]" },	   [STEP_MEMBER] = { ".(member)" },
	[STEP_CLOSURE] = { ".(closure)" }, [STEP_BUFFER] = { ".buffer" },
	[STEP_INSIDE_ITEM] = { "[#]" },	   [STEP_HELD] = { ".<held value>" },
};

/* A link's which is a tagged address or an offset, its number an index, or whether of a table. */
struct walk {
	struct object_walk links;
	struct v8_reader reader;
	bool is_table; /* names of properties may be contents, as of a cache */
};

static bool is_object(uint64_t word)
{
	return (word & V8_TAGS) == V8_STRONG;
}

static bool follow(struct walk *walk, enum step step, uint64_t name, uint64_t number,
		   uint64_t value)
{
	return (is_object(value) || (walk->links.with_values && !(value & V8_STRONG))) &&
	       object_walk_follow(&walk->links,
				  &(struct object_link){ step, value, 0, name, number });
}

static bool word_at(struct walk *walk, uint64_t address, uint64_t *ret)
{
	return object_walk_step(&walk->links) && view_word(&walk->reader.view, address, ret);
}

static bool is_array(const struct walk *walk, const struct v8_map *map)
{
	return map->type < V8_TYPES && walk->reader.layout->rules[map->type] == V8_ARRAY;
}

/* The array that the word at place is the tagged address of, and how many items it has. */
static bool find_array(struct walk *walk, uint64_t place, uint64_t *ret, uint64_t *ret_count)
{
	struct v8_map map;

	if (!word_at(walk, place, ret) || !v8_map_of(&walk->reader, *ret, &map) ||
	    !is_array(walk, &map) || !word_at(walk, *ret - V8_STRONG + LENGTH, ret_count))
		return false;
	*ret_count >>= 32;
	*ret += ITEMS - V8_STRONG;
	return true;
}

static bool visit_elements(struct walk *walk, uint64_t object, const struct v8_map *map)
{
	uint64_t items, count, key, value;
	uint8_t bits;

	if (!view_read(&walk->reader.view, map->address + MAP_MORE_BITS, &bits, 1) ||
	    !find_array(walk, object + ELEMENTS, &items, &count))
		return false;
	if (bits >> ELEMENTS_SHIFT == walk->reader.layout->dictionary_elements) {
		for (uint64_t i = FIRST_NUMBER; i + NUMBER_ENTRY <= count; i += NUMBER_ENTRY) {
			if (!word_at(walk, items + i * V8_WORD, &key) ||
			    !word_at(walk, items + (i + 1) * V8_WORD, &value))
				return false;
			if (!is_object(key) && follow(walk, STEP_INDEX, 0, key >> 32, value))
				return true;
		}
		return false;
	}
	for (uint64_t i = 0; i < count; i++) {
		if (!word_at(walk, items + i * V8_WORD, &value))
			return false;
		if (follow(walk, STEP_INDEX, 0, i, value))
			return true;
	}
	return false;
}

/*
 * Visit the entries of a Map or Set. The words of deleted entries refer to no object; those that
 * were never used stand behind all others.
 */
static bool visit_entries(struct walk *walk, uint64_t object, bool is_map)
{
	uint64_t items, count, counts[BUCKETS], key, value, first;
	uint64_t size = is_map ? 3 : 2;

	if (!find_array(walk, object + TABLE, &items, &count) || count < BUCKETS ||
	    !view_read(&walk->reader.view, items, counts, sizeof(counts)))
		return false;
	first = BUCKETS + (counts[2] >> 32);
	count = MIN(count, first + size * ((counts[0] >> 32) + (counts[1] >> 32)));
	for (uint64_t i = first; i + size <= count; i += size) {
		if (!word_at(walk, items + i * V8_WORD, &key) ||
		    !word_at(walk, items + (i + 1) * V8_WORD, &value))
			return false;
		if ((is_map && follow(walk, STEP_ENTRY, key, 0, value)) ||
		    follow(walk, STEP_MEMBER, 0, 0, key))
			return true;
	}
	return false;
}

/* The name of that number of a scope's variables; false: it is not known. */
static bool read_variable_name(struct walk *walk, uint64_t context, uint64_t number, uint64_t *ret)
{
	struct node_scope scope;
	uint64_t word, first;

	if (!word_at(walk, context + ITEMS, &word) || !is_object(word) ||
	    !node_read_scope(&walk->reader, word - V8_STRONG, &scope) || !scope.has_names)
		return false;
	first = scope.flags & HAS_EXTENSION ? 3 : 2;
	return number >= first && number - first < scope.count &&
	       word_at(walk, scope.names + (number - first) * V8_WORD, ret);
}

static bool visit_variables(struct walk *walk, uint64_t context)
{
	enum { FIRST = 2 };
	uint64_t count, name, value;

	if (!word_at(walk, context + LENGTH, &count))
		return false;
	count >>= 32;
	for (uint64_t i = FIRST; i < count; i++) {
		if (!word_at(walk, context + ITEMS + i * V8_WORD, &value))
			return false;
		if (!is_object(value))
			continue;
		if (!read_variable_name(walk, context, i, &name))
			name = 0;
		if (follow(walk, STEP_VARIABLE, name, 0, value))
			return true;
	}
	return false;
}

static bool is_context(const struct walk *walk, const struct v8_map *map)
{
	return map->type >= walk->reader.layout->first_context &&
	       map->type <= walk->reader.layout->last_context;
}

/* The context that the word at place is the tagged address of. */
static bool find_context(struct walk *walk, uint64_t place, uint64_t *ret)
{
	struct v8_map map;

	if (!word_at(walk, place, ret) || !v8_map_of(&walk->reader, *ret, &map) ||
	    !is_context(walk, &map))
		return false;
	*ret -= V8_STRONG;
	return true;
}

/* The data that a function shares with others that were made at the same place. */
static bool find_shared(struct walk *walk, uint64_t object, uint64_t *ret)
{
	struct v8_map map;

	return word_at(walk, object + walk->reader.layout->shared, ret) &&
	       v8_map_of(&walk->reader, *ret, &map) && map.type == walk->reader.layout->shared_type;
}

static bool visit_closure(struct walk *walk, uint64_t object)
{
	uint64_t shared, context;

	return find_shared(walk, object, &shared) &&
	       find_context(walk, object + walk->reader.layout->context, &context) &&
	       follow(walk, STEP_CLOSURE, 0, 0, context + V8_STRONG);
}

/* A generator is the object with such words; an async function that waits has one. */
static bool is_generator(struct walk *walk, uint64_t object)
{
	enum { FUNCTION = 24, CONTEXT = 32, VARIABLES = 72 };
	uint64_t word, count;

	return word_at(walk, object + FUNCTION, &word) && is_object(word) &&
	       find_shared(walk, word - V8_STRONG, &count) &&
	       find_context(walk, object + CONTEXT, &word) &&
	       find_array(walk, object + VARIABLES, &word, &count);
}

static bool is_others(const struct v8_layout *layout, const struct v8_map *map)
{
	return map->type < V8_TYPES && !v8_is_script(layout, map->type) &&
	       !layout->labels[map->type];
}

/*
 * Visit objects of the program that a structure of V8 has, and those of the list that it begins:
 * reactions of a promise, and cells of a FinalizationRegistry, which hold one word each.
 */
static void visit_structure(struct walk *walk, uint64_t address, struct v8_map map)
{
	enum { NEXT = 8, HELD = 32, NEXT_CELL = 48, MOST_SIZE = 128 };
	const struct v8_layout *layout = walk->reader.layout;
	bool is_cell = map.type == layout->weak_cell_type;
	uint32_t type = map.type;
	uint64_t word;

	do {
		uint64_t first = is_cell ? HELD : V8_WORD;
		uint64_t end = is_cell ? HELD + V8_WORD : MIN(map.size, MOST_SIZE);

		for (uint64_t at = first; at < end; at += V8_WORD)
			if (word_at(walk, address + at, &word) &&
			    v8_map_of(&walk->reader, word, &map) && map.type != type &&
			    follow(walk, is_cell ? STEP_HELD : STEP_INSIDE, at, 0, word))
				return;
		if (!word_at(walk, address + (is_cell ? NEXT_CELL : NEXT), &word))
			return;
		address = word - V8_STRONG;
	} while (v8_map_of(&walk->reader, word, &map) && map.type == type);
}

static void visit_entries_of_weak(struct walk *walk, uint64_t object)
{
	enum { COUNTS = 3, ENTRY = 2 };
	uint64_t items, count, key, value;

	if (!find_array(walk, object + TABLE, &items, &count))
		return;
	for (uint64_t i = COUNTS; i + ENTRY <= count; i += ENTRY)
		if (!word_at(walk, items + i * V8_WORD, &key) ||
		    !word_at(walk, items + (i + 1) * V8_WORD, &value) ||
		    follow(walk, STEP_ENTRY, key, 0, value))
			return;
}

/* Visit the words between the head of an object and its values, which only V8 gets at. */
static void visit_inside(struct walk *walk, uint64_t object, const struct v8_map *map)
{
	const struct v8_layout *layout = walk->reader.layout;
	uint64_t word, items, count;
	struct v8_map inner;
	uint8_t words = 0;

	if (map->type == layout->weak_ref_type || map->type == layout->weak_set_type)
		return;
	if (map->type == layout->weak_map_type) {
		visit_entries_of_weak(walk, object);
		return;
	}
	view_read(&walk->reader.view, map->address + MAP_VALUES, &words, sizeof(words));
	for (uint64_t at = TABLE; at < MIN((uint64_t)words * V8_WORD, map->size); at += V8_WORD) {
		if (!word_at(walk, object + at, &word) || !v8_map_of(&walk->reader, word, &inner))
			continue;
		if (is_others(layout, &inner))
			visit_structure(walk, word - V8_STRONG, inner);
		if (!find_array(walk, object + at, &items, &count)) {
			if (follow(walk, STEP_INSIDE, at, 0, word))
				return;
			continue;
		}
		for (uint64_t i = 0; i < count; i++)
			if (!word_at(walk, items + i * V8_WORD, &word) ||
			    follow(walk, STEP_INSIDE_ITEM, at, i, word))
				return;
	}
}

static bool take_property(void *data, uint64_t name, uint64_t value)
{
	struct walk *walk = data;

	return !object_walk_step(&walk->links) ||
	       follow(walk, STEP_PROPERTY, name, walk->is_table, value);
}

/* Visit what the object at address refers to, in words of the language. */
static void walk_edges(struct walk *walk, uint64_t address)
{
	const struct v8_layout *layout = walk->reader.layout;
	struct v8_map map;
	uint64_t word;

	if (!v8_map_of(&walk->reader, address + V8_STRONG, &map))
		return;
	if (is_context(walk, &map)) {
		visit_variables(walk, address);
		return;
	}
	if (is_others(layout, &map)) {
		visit_structure(walk, address, map);
		return;
	}
	walk->is_table = map.type != layout->global_type && node_has_table(&walk->reader, &map);
	if (!v8_is_script(layout, map.type) ||
	    node_visit_properties(&walk->reader, address, take_property, walk) ||
	    visit_elements(walk, address, &map))
		return;
	if (map.type == layout->hash_type || map.type == layout->set_type)
		visit_entries(walk, address, map.type == layout->hash_type);
	else if (map.type == layout->typed_array_type) {
		if (word_at(walk, address + layout->view_buffer, &word))
			follow(walk, STEP_BUFFER, 0, 0, word);
	} else if (find_shared(walk, address, &word)) {
		visit_closure(walk, address);
	} else if (map.type != layout->global_type) {
		visit_inside(walk, address, &map);
	}
}

static struct walk walk_of(const struct object_walk *links)
{
	const struct node *node = (const struct node *)links->space;

	return (struct walk){ *links, { links->view, &node->parts->layout, 0, 0 } };
}

/* Without links to follow. */
static struct walk walk_all(struct object_space *space)
{
	struct object_walk links = object_walk_begin(space, NULL, NULL);

	links.steps.left = space->image->size;
	return walk_of(&links);
}

uint64_t node_target_of(const struct object_space *space, allocation_id id)
{
	return allocation_start(space->index, id) + V8_STRONG;
}

void node_walk_links(struct object_walk *links, allocation_id id)
{
	struct walk walk = walk_of(links);

	walk_edges(&walk, allocation_start(links->space->index, id));
	*links = walk.links;
}

static bool read_text(struct object_path *path, uint64_t word, char ret[static MOST_KEY])
{
	struct walk walk = walk_all(path->space);

	return v8_read_text(&walk.reader, word, ret, MOST_KEY);
}

static bool is_name(const char *text)
{
	size_t length =
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$");

	return length > 0 && !text[length] && (text[0] < '0' || text[0] > '9');
}

/* Numbers end in 0. */
static void tell_key(struct object_path *path, const struct object_link *link)
{
	char text[MOST_KEY];

	if (!path->with_content)
		path_add(path, ".get(...)");
	else if (!(link->which & 1))
		path_add(path, ".get(%d)", (int)(link->which >> 32));
	else if (read_text(path, link->which, text))
		path_add(path, ".get('%s')", text);
	else
		path_add(path, ".get(object)");
}

/* A core without contents has one letter instead, or what is none. */
static bool is_left_out(const struct object_path *path, const char *text)
{
	const char letters[] = { text[0], '?', '\0' };

	return image_is_slim(path->space->image) && strspn(text, letters) == strlen(text);
}

static void tell_property(struct object_path *path, const struct object_link *link)
{
	char text[MOST_KEY];
	bool is_text = read_text(path, link->which, text);

	if ((link->number && !path->with_content) || (is_text && is_left_out(path, text)))
		path_add(path, "[...]");
	else if (!is_text)
		path_add(path, "[symbol]");
	else if (is_name(text))
		path_add(path, ".%s", text);
	else
		path_add(path, "['%s']", text);
}

/* Name the word of V8's own at the end of the path, by the kind of the object that has it. */
static void tell_inside(struct object_path *path, uint64_t offset)
{
	enum { PARAMETERS = 72 };
	struct walk walk = walk_all(path->space);
	const struct v8_layout *layout = walk.reader.layout;
	const struct {
		uint32_t type;
		uint64_t offset;
		const char *text;
	} texts[] = {
		{ layout->bound_type, 24, "<target>" },
		{ layout->bound_type, 32, "<this>" },
		{ layout->bound_type, 40, "<arguments>" },
		{ layout->promise_type, 24, "<result>" },
	};
	const char *text = "<inside>";
	struct v8_map map;

	if (offset == PARAMETERS && is_generator(&walk, path->source - V8_STRONG))
		text = "<variables>";
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		if (v8_map_of(&walk.reader, path->source, &map) && map.type == texts[i].type &&
		    offset == texts[i].offset)
			text = texts[i].text;
	path_add(path, ".%s", text);
}

bool node_tell_step(struct object_path *path, const struct object_link *link)
{
	char text[MOST_KEY];

	if (link->kind == STEP_PROPERTY)
		tell_property(path, link);
	else if (link->kind == STEP_ENTRY)
		tell_key(path, link);
	else if (link->kind == STEP_VARIABLE) /* The first follows the name of a file. */
		path_add(path, "%s%s", path->is_first ? ": " : ".",
			 link->which && read_text(path, link->which, text) ? text : "(variable)");
	else if (link->kind == STEP_INSIDE || link->kind == STEP_INSIDE_ITEM)
		tell_inside(path, link->which);
	return true;
}

/* The file of the script that the function is of. */
static bool read_file(struct walk *walk, uint64_t shared, char *ret, size_t size)
{
	uint64_t script;

	return word_at(walk, shared - V8_STRONG + walk->reader.layout->script, &script) &&
	       node_read_file(&walk->reader, script, ret, size);
}

/* Each thread with JavaScript has a heap; these are numbered by their addresses. */
static size_t find_heap(const struct node *node, uint64_t address, size_t *ret_count)
{
	enum { MOST_HEAPS = 64 };
	const struct v8_chunk *own = v8_find_chunk(node->parts, address);
	uint64_t heaps[MOST_HEAPS];
	size_t count = 0, before = 0;

	array_for_each(chunk, &node->parts->chunks) {
		size_t i = 0;

		while (i < count && heaps[i] != chunk->heap)
			i++;
		if (i < count || count == MOST_HEAPS || !v8_is_walked(chunk))
			continue;
		heaps[count++] = chunk->heap;
		before += own && chunk->heap < own->heap;
	}
	*ret_count = count;
	return before + 1;
}

/* Name an object of which each heap has one. */
static void name_of_heap(struct object_naming *naming, uint64_t target, const char *text)
{
	const struct node *node = (const struct node *)naming->space;
	size_t count, number = find_heap(node, target - V8_STRONG, &count);

	if (count > 1)
		object_name(naming, target, "%s (heap %zu)", text, number);
	else
		object_name(naming, target, "%s", text);
}

/* The scope of a script has none around it but that of all. */
static void name_scope(struct object_naming *naming, struct walk *walk, uint64_t function)
{
	char file[NODE_MOST_NAME];
	uint64_t shared, context, outer, none;
	allocation_id id;

	if (!find_shared(walk, function, &shared) ||
	    !find_context(walk, function + walk->reader.layout->context, &context) ||
	    !find_context(walk, context + ITEMS + V8_WORD, &outer) ||
	    find_context(walk, outer + ITEMS + V8_WORD, &none))
		return;
	id = object_find(naming->space, context + V8_STRONG);
	if (id != NO_ALLOCATION && !bitmap_get(naming->named, id) &&
	    read_file(walk, shared, file, sizeof(file)))
		name_of_heap(naming, context + V8_STRONG, file);
}

struct error *node_find_globals(struct object_naming *naming)
{
	struct object_space *space = naming->space;
	struct walk walk = walk_all(space);
	size_t hint = 0;

	for (size_t i = 0; i < allocation_count(space->index) && !naming->error; i++) {
		struct v8_map map;
		uint64_t start;

		if (!object_class_of(space, (allocation_id)i))
			continue;
		start = allocation_range_near(space->index, (allocation_id)i, &hint).start;
		if (!v8_map_of(&walk.reader, start + V8_STRONG, &map) ||
		    !v8_is_script(walk.reader.layout, map.type))
			continue;
		if (map.type == walk.reader.layout->global_type)
			name_of_heap(naming, start + V8_STRONG, "globalThis");
		else
			name_scope(naming, &walk, start);
	}
	return NULL;
}

/* A timer's members, lib/internal/timers.js. */
struct timer {
	struct walk *walk;
	uint64_t called; /* the function, tagged */
	bool is_listed;	 /* it has a next one in its list, perhaps the list itself */
};

static bool take_member(void *data, uint64_t name, uint64_t value)
{
	struct timer *timer = data;
	struct v8_map map;
	char text[sizeof("_onTimeout") + 1];

	if (!v8_read_text(&timer->walk->reader, name, text, sizeof(text)))
		return false;
	if (strcmp(text, "_onTimeout") == 0)
		timer->called = value;
	if (strcmp(text, "_idleNext") == 0)
		timer->is_listed = v8_map_of(&timer->walk->reader, value, &map) &&
				   v8_is_script(timer->walk->reader.layout, map.type);
	return false;
}

static struct error *tell_task(struct walk *walk, struct runtime_task *task, uint64_t function,
			       const struct task_visitor *visitor)
{
	struct runtime_frame frame = { 0 };
	char name[NODE_MOST_NAME], file[NODE_MOST_NAME];
	uint64_t shared;

	if (node_read_function(&walk->reader, function, name, sizeof(name)))
		frame.function = name;
	if (find_shared(walk, function - V8_STRONG, &shared) &&
	    read_file(walk, shared, file, sizeof(file)))
		frame.file = file;
	TRY(visitor->task(visitor->frames.data, task));
	visitor->frames.frame(visitor->frames.data, &frame);
	return visitor->end(visitor->frames.data);
}

/* A timer that has ended or was cleared is in no list. */
static uint64_t find_called(struct walk *walk, uint64_t address)
{
	struct timer timer = { .walk = walk };

	node_visit_properties(&walk->reader, address, take_member, &timer);
	return timer.is_listed && is_object(timer.called) &&
			       find_shared(walk, timer.called - V8_STRONG, &address)
		       ? timer.called
		       : 0;
}

/* An async function that waits says where it goes on, a small number that is less than 0 else. */
static uint64_t find_waiting(struct walk *walk, uint64_t address)
{
	enum { FUNCTION = 24, CONTINUATION = 64 };
	uint64_t function, place;

	return is_generator(walk, address) && word_at(walk, address + CONTINUATION, &place) &&
			       (int64_t)place >= 0 && word_at(walk, address + FUNCTION, &function)
		       ? function
		       : 0;
}

struct error *node_visit_tasks(struct object_space *space, const struct task_visitor *visitor)
{
	struct walk walk = walk_all(space);
	const struct v8_layout *layout = walk.reader.layout;
	size_t hint = 0;

	bitmap_for_each(id, allocation_used(space->index)) {
		uint64_t number = object_class_of(space, (allocation_id)id), function = 0;
		struct runtime_task task = { .id = (allocation_id)id };
		enum class_name_kind kind;
		struct v8_map map;
		const char *name;

		if (!number)
			continue;
		task.address = allocation_range_near(space->index, (allocation_id)id, &hint).start;
		if (!v8_map_of(&walk.reader, task.address + V8_STRONG, &map) ||
		    !v8_is_script(layout, map.type))
			continue;
		if (map.type == layout->async_type || map.type == layout->async_generator_type) {
			task.kind = "Async function";
			function = find_waiting(&walk, task.address);
		} else if ((name = object_class_name(space, number, &kind)) &&
			   strcmp(name, "Timeout") == 0) {
			task.kind = "Timer";
			function = find_called(&walk, task.address);
		}
		if (function)
			TRY(tell_task(&walk, &task, function, visitor));
	}
	return NULL;
}
