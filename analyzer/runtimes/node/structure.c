/*
 * Words of V8 that are no addresses, and no values of programs: what maps are, lengths, details of
 * properties, scopes, and where calls wait; and names of functions, variables, files, and of those
 * properties that code has as constants. Other keys, numbers, texts and buffers are values.
 */
#include "analyzer/runtimes/keeper.h"
#include "analyzer/runtimes/node/node.h"
#include "analyzer/runtimes/object_links.h"

#include <string.h>

enum {
	LENGTH = 8, /* of arrays and the like */
	ITEMS = 16,
	MAP_END = 20, /* of what is read of a Map */
	DESCRIPTOR = 24,
	SCOPE_END = 32,
	BUFFER_SIZES = 24, /* of an ArrayBuffer */
	BUFFER_END = 72,
	TABLE = 24, /* of a Map or Set */
	TABLE_COUNTS = 3,
	CONTINUATION = 64,
	CONSTANTS = 16, /* of bytecode: an array */
	MOST_NESTED = 3,
	MOST_WORDS = 1 << 20,
};

struct structure {
	struct keeper keeper;
	struct node *node;
	struct v8_reader reader;
	struct bitmap constants; /* strings that code has */
};

static bool word_at(struct structure *structure, uint64_t address, uint64_t *ret)
{
	return view_word(&structure->keeper.view, address, ret);
}

/* The name that the word is the tagged address of, or what that stands for. */
static void keep_text(struct structure *structure, uint64_t word)
{
	enum { MOST_THIN = 4 };
	const struct v8_layout *layout = structure->reader.layout;
	struct v8_map map;
	uint32_t length;

	for (int i = 0; i < MOST_THIN && v8_map_of(&structure->reader, word, &map) &&
			map.type < layout->first_string_end;
	     i++) {
		uint64_t address = word - V8_STRONG;

		if (!view_read(&structure->keeper.view, address + layout->text_length, &length,
			       sizeof(length)) ||
		    length >= NODE_MOST_NAME)
			return;
		if ((map.type & layout->representation) == layout->sequential)
			keep_name(&structure->keeper, address + layout->text,
				  (map.type & layout->encoding) == layout->one_byte
					  ? length
					  : 2 * (uint64_t)length);
		if ((map.type & layout->representation) != layout->thin ||
		    !word_at(structure, address + ITEMS, &word))
			return;
	}
}

static void keep_text_at(struct structure *structure, uint64_t place)
{
	uint64_t word;

	if (word_at(structure, place, &word))
		keep_text(structure, word);
}

/* Mark strings that the array of constants has, and that those in it have. */
static void mark_constants(struct structure *structure, uint64_t word, int depth)
{
	const struct v8_layout *layout = structure->reader.layout;
	allocation_id id = object_find(&structure->node->space, word);
	uint64_t address = word - V8_STRONG, count;
	struct v8_map map;

	if (id == NO_ALLOCATION || !v8_map_of(&structure->reader, word, &map))
		return;
	if (map.type < layout->first_string_end) {
		bitmap_set(&structure->constants, id);
		return;
	}
	if (depth == MOST_NESTED || map.type >= V8_TYPES || !layout->labels[map.type] ||
	    strcmp(layout->labels[map.type], "(array)") != 0)
		return;
	count = MIN(allocation_size(structure->node->space.index, id) / V8_WORD, MOST_WORDS);
	for (uint64_t i = 1; i < count && v8_step(&structure->reader); i++)
		if (word_at(structure, address + i * V8_WORD, &word) &&
		    (word & V8_TAGS) == V8_STRONG)
			mark_constants(structure, word, depth + 1);
}

static void mark_of(struct structure *structure, uint64_t address, const struct v8_map *map)
{
	const struct v8_layout *layout = structure->reader.layout;
	uint64_t word;

	if (map->type >= V8_TYPES || layout->rules[map->type] != V8_BYTECODE)
		return;
	for (uint64_t at = CONSTANTS; at < layout->bytecode; at += V8_WORD)
		if (word_at(structure, address + at, &word) && (word & V8_TAGS) == V8_STRONG)
			mark_constants(structure, word, 0);
}

/* A name of a property, if code has it. V8 and Node.js read some themselves. */
static void keep_property(struct structure *structure, uint64_t word)
{
	static const char *const known[] = { "constructor", "message", "_onTimeout", "_idleNext" };
	allocation_id id = object_find(&structure->node->space, word);
	char text[sizeof("constructor") + 1];

	if (id == NO_ALLOCATION || !v8_read_text(&structure->reader, word, text, sizeof(text)))
		return;
	if (bitmap_get(&structure->constants, id))
		keep_text(structure, word);
	for (size_t i = 0; i < COUNT_OF(known); i++)
		if (strcmp(text, known[i]) == 0)
			keep_text(structure, word);
}

static void keep_descriptors(struct structure *structure, uint64_t address)
{
	uint64_t count, word;

	if (!word_at(structure, address + LENGTH, &count))
		return;
	for (uint64_t i = 1; i <= (count & UINT16_MAX); i++) {
		uint64_t place = address + DESCRIPTOR * i;

		keep_numbers(&structure->keeper, place + V8_WORD, V8_WORD);
		if (word_at(structure, place, &word))
			keep_property(structure, word);
	}
}

/* The names of variables, and of the function behind them. */
static void keep_scope(struct structure *structure, uint64_t address, uint64_t end)
{
	struct node_scope scope;

	if (!node_read_scope(&structure->reader, address, &scope))
		return;
	keep_numbers(&structure->keeper, address + LENGTH, SCOPE_END - LENGTH);
	for (uint64_t at = scope.names; at < end; at += V8_WORD)
		keep_text_at(structure, at);
}

/* The words of an object that say its size, if its map does not. */
static void keep_length(struct structure *structure, uint64_t address, const struct v8_map *map)
{
	const struct v8_layout *layout = structure->reader.layout;

	if (map->type < layout->first_string_end)
		keep_numbers(&structure->keeper, address + layout->text_length, sizeof(uint32_t));
	else if (map->type < V8_TYPES && layout->rules[map->type] != V8_UNKNOWN)
		keep_numbers(&structure->keeper, address + LENGTH, V8_WORD);
}

static void keep_own(struct structure *structure, uint64_t address, uint64_t end,
		     const struct v8_map *map)
{
	const struct v8_layout *layout = structure->reader.layout;

	if (map->type == layout->map_type)
		keep_numbers(&structure->keeper, address + LENGTH, MAP_END - LENGTH);
	else if (map->type == layout->scope_type)
		keep_scope(structure, address, end);
	else if (map->type == layout->shared_type)
		keep_text_at(structure, address + layout->name);
	else if (map->type == layout->script_type)
		keep_text_at(structure, address + layout->script_name);
	else if (map->type < V8_TYPES && layout->rules[map->type] == V8_DESCRIPTORS)
		keep_descriptors(structure, address);
}

static void keep_of_script(struct structure *structure, uint64_t address, uint64_t end,
			   const struct v8_map *map)
{
	const struct v8_layout *layout = structure->reader.layout;
	struct keeper *keeper = &structure->keeper;
	uint64_t word;

	if (map->type == layout->array_buffer_type) {
		keep_counts(keeper, address + BUFFER_SIZES, MIN(address + BUFFER_END, end));
	} else if (map->type == layout->hash_type || map->type == layout->set_type) {
		if (word_at(structure, address + TABLE, &word) && (word & V8_TAGS) == V8_STRONG)
			keep_numbers(keeper, word - V8_STRONG + ITEMS, TABLE_COUNTS * V8_WORD);
	} else if (map->type == layout->async_type || map->type == layout->async_generator_type) {
		keep_numbers(keeper, address + CONTINUATION, V8_WORD);
	}
}

static void keep_object(struct structure *structure, uint64_t address, uint64_t end,
			const struct v8_map *map)
{
	keep_length(structure, address, map);
	keep_own(structure, address, end, map);
	if (v8_is_script(structure->reader.layout, map->type))
		keep_of_script(structure, address, end, map);
}

/* Call each for the objects of the chunks, free ones included. */
static void visit_objects(struct structure *structure, bool only_code)
{
	const struct allocation_index *index = structure->node->space.index;
	size_t hint = 0;

	array_for_each(chunk, &structure->node->parts->chunks) {
		for (uint64_t at = chunk->start;
		     v8_is_walked(chunk) && at < chunk->end && !structure->keeper.error;) {
			allocation_id id = allocation_find(index, at);
			struct memory_range range;
			struct v8_map map;
			uint64_t word;

			if (id == NO_ALLOCATION)
				break;
			range = allocation_range_near(index, id, &hint);
			if (range.start != at || range.end > chunk->end)
				break;
			if (word_at(structure, at, &word) &&
			    v8_read_map(&structure->reader, word, &map)) {
				if (only_code)
					mark_of(structure, at, &map);
				else
					keep_object(structure, at, range.end, &map);
			}
			at = range.end;
		}
	}
}

struct error *node_visit_structure(struct object_space *space,
				   const struct structure_visitor *visitor)
{
	struct node *node = (struct node *)space;
	struct structure structure = {
		{ visitor, { space->image }, NULL },
		node,
		{ { space->image }, &node->parts->layout, 0, 0 },
		{ 0 },
	};

	TRY(bitmap_init(&structure.constants, allocation_count(space->index), space->account));
	visit_objects(&structure, true);
	visit_objects(&structure, false);
	bitmap_deinit(&structure.constants);
	return structure.keeper.error ? structure.keeper.error
				      : node_weak_visit_structure(node, visitor);
}
