/*
 * Reads values of JavaScript: numbers, texts, and how many items there are.
 *
 *	number   | map | double |
 *	constant | map | as a number | as a text |      true, undefined, the hole of an array
 *	array    | map | properties | elements | length |
 *	Map, Set | map | properties | elements | table |    table | map | length | count | ...
 */
#include "analyzer/runtimes/node/node.h"
#include "analyzer/runtimes/object_values.h"

enum { NUMBER = 8, AS_TEXT = 16, LENGTH = 24, TABLE = 24, COUNT = 16 };

static bool read_small(struct view *view, uint64_t place, uint64_t *ret)
{
	if (!view_word(view, place, ret) || (*ret & V8_STRONG))
		return false;
	*ret >>= 32;
	return true;
}

static void read_length(struct v8_reader *reader, const struct v8_map *map, uint64_t object,
			struct object_value *ret)
{
	const struct v8_layout *layout = reader->layout;
	uint64_t table, length;

	if (map->type == layout->hash_type || map->type == layout->set_type) {
		if (view_word(&reader->view, object + TABLE, &table) &&
		    (table & V8_TAGS) == V8_STRONG &&
		    read_small(&reader->view, table - V8_STRONG + COUNT, &length))
			object_value_set_length(ret, length);
	} else if (ret->class_name && strcmp(ret->class_name, "Array") == 0 &&
		   read_small(&reader->view, object + LENGTH, &length)) {
		object_value_set_length(ret, length);
	}
}

static void read_text(struct v8_reader *reader, uint64_t word, struct object_value *ret)
{
	uint32_t length;

	if (!view_read(&reader->view, word - V8_STRONG + reader->layout->text_length, &length,
		       sizeof(length)))
		return;
	object_value_set_length(ret, length);
	if (v8_read_text(reader, word, ret->text, sizeof(ret->text)) || length == 0)
		ret->kind = OBJECT_IS_TEXT;
}

/* True, null and so on are outside of the heap that is walked. */
static bool read_constant(struct v8_reader *reader, uint64_t word, struct object_value *ret)
{
	uint64_t text;

	if (!view_word(&reader->view, word - V8_STRONG + AS_TEXT, &text) ||
	    !v8_read_text(reader, text, ret->text, sizeof(ret->text)) ||
	    strcmp(ret->text, "hole") == 0)
		return false;
	ret->class_name = strcmp(ret->text, "null") == 0	? "(null)"
			  : strcmp(ret->text, "undefined") == 0 ? "(undefined)"
								: "(boolean)";
	ret->kind = ret->class_name[1] == 'b' ? OBJECT_IS_TEXT : OBJECT_SAYS_NOTHING;
	return true;
}

bool node_read_value(struct object_space *space, struct view *view, const struct object_link *link,
		     struct object_value *ret)
{
	const struct node *node = (const struct node *)space;
	struct v8_reader reader = { *view, &node->parts->layout, 0, 0 };
	allocation_id id = object_find(space, link->target);
	struct v8_map map;
	double real;

	if (!(link->target & V8_STRONG)) {
		ret->class_name = "(number)";
		object_value_set_integer(ret, (int32_t)(link->target >> 32));
		return true;
	}
	if (!v8_map_of(&reader, link->target, &map))
		return false;
	if (id != NO_ALLOCATION)
		ret->class_name = object_class_name_at(space, id);
	if (map.type < reader.layout->first_string_end) {
		ret->class_name = ret->class_name ? ret->class_name : "(string)";
		read_text(&reader, link->target, ret);
	} else if (map.type == reader.layout->number_type) {
		ret->class_name = ret->class_name ? ret->class_name : "(number)";
		if (view_read(view, link->target - V8_STRONG + NUMBER, &real, sizeof(real)))
			object_value_set_real(ret, real);
	} else if (id == NO_ALLOCATION) {
		return read_constant(&reader, link->target, ret);
	} else {
		read_length(&reader, &map, link->target - V8_STRONG, ret);
	}
	return true;
}
