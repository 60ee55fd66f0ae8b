#include "allocators/v8/v8.h"

enum {
	SIZE = 8, /* of a Map: words that its objects have, 0 if they differ */
	TYPE = 12,
	LENGTH = 8, /* of arrays and the like, as a small integer: in the upper half of the word */
	HEAD = 16,  /* of arrays, before the items */
	DESCRIPTOR = 24,
	MOST_PROPERTIES = 0x3ff,
	MOST_SCAN = 1 << 20,
};

bool v8_read_map(struct v8_reader *reader, uint64_t word, struct v8_map *ret)
{
	uint64_t meta, own;
	uint16_t type;
	uint8_t size;

	ret->address = word - V8_STRONG;
	if ((word & V8_TAGS) != V8_STRONG || (word & (V8_WORD - 1)) != V8_STRONG ||
	    !view_word(&reader->view, ret->address, &meta) || (meta & V8_TAGS) != V8_STRONG)
		return false;
	if (meta != reader->meta) {
		if (!view_word(&reader->view, meta - V8_STRONG, &own) || own != meta ||
		    !view_read(&reader->view, meta - V8_STRONG + TYPE, &type, sizeof(type)) ||
		    type != reader->layout->map_type)
			return false;
		reader->meta = meta;
	}
	if (!view_read(&reader->view, ret->address + SIZE, &size, sizeof(size)) ||
	    !view_read(&reader->view, ret->address + TYPE, &type, sizeof(type)))
		return false;
	ret->type = type;
	ret->size = (uint32_t)size * V8_WORD;
	return true;
}

static uint64_t whole_words(uint64_t size)
{
	return (size + V8_WORD - 1) & ~(uint64_t)(V8_WORD - 1);
}

static bool is_text(const struct v8_layout *layout, uint32_t type)
{
	return type < layout->first_string_end;
}

static bool is_in_one_piece(const struct v8_layout *layout, uint32_t type)
{
	return is_text(layout, type) && (type & layout->representation) == layout->sequential;
}

static uint64_t text_size(struct v8_reader *reader, uint64_t address, uint32_t type)
{
	const struct v8_layout *layout = reader->layout;
	uint32_t length;

	if (!view_read(&reader->view, address + layout->text_length, &length, sizeof(length)))
		return 0;
	return whole_words(layout->text + ((type & layout->encoding) == layout->one_byte
						   ? (uint64_t)length
						   : 2 * (uint64_t)length));
}

/* 0: no rule says it. */
static uint64_t size_by_rule(struct v8_reader *reader, uint64_t address, uint32_t type)
{
	uint64_t word, length;

	if (is_text(reader->layout, type))
		return is_in_one_piece(reader->layout, type) ? text_size(reader, address, type) : 0;
	if (type >= V8_TYPES || !view_word(&reader->view, address + LENGTH, &word))
		return 0;
	length = word >> 32;
	switch ((enum v8_rule)reader->layout->rules[type]) {
	case V8_ARRAY:
	case V8_DOUBLES:
		return HEAD + length * V8_WORD;
	case V8_LIST:
		return HEAD + V8_WORD + length * V8_WORD;
	case V8_PROPERTIES:
		return HEAD + (length & MOST_PROPERTIES) * V8_WORD;
	case V8_BYTES:
		return whole_words(HEAD + length);
	case V8_BYTECODE:
		return whole_words(reader->layout->bytecode + length);
	case V8_DESCRIPTORS:
		return DESCRIPTOR + (word & UINT16_MAX) * DESCRIPTOR;
	case V8_FEEDBACK:
		return reader->layout->feedback + (word & UINT32_MAX) * V8_WORD;
	case V8_FREE:
		return length * reader->layout->free_unit;
	case V8_UNKNOWN:
		break;
	}
	return 0;
}

static bool is_end(struct v8_reader *reader, uint64_t address, uint64_t end)
{
	struct v8_map map;
	uint64_t word;

	return address == end ||
	       (view_word(&reader->view, address, &word) && v8_read_map(reader, word, &map));
}

/* The size of the bytes up to the next reference to a map. */
static uint64_t size_up_to_map(struct v8_reader *reader, uint64_t address, uint64_t end)
{
	uint64_t size = V8_WORD;

	while (size < MOST_SCAN && !is_end(reader, address + size, end))
		size += V8_WORD;
	return size;
}

bool v8_read_object(struct v8_reader *reader, uint64_t address, uint64_t end, struct v8_object *ret)
{
	const struct v8_layout *layout = reader->layout;
	struct v8_map *map = &ret->map;
	enum v8_rule rule;
	uint64_t word;

	if (!view_word(&reader->view, address, &word) || !v8_read_map(reader, word, map))
		return false;
	ret->size = map->size;
	if (!ret->size)
		ret->size = size_by_rule(reader, address, map->type);
	/* A native context has a word more than it counts. */
	if (!ret->size || (!map->size && map->type >= layout->first_context &&
			   map->type <= layout->last_context && ret->size <= end - address &&
			   !is_end(reader, address + ret->size, end)))
		ret->size = (ret->size ? ret->size - V8_WORD : 0) +
			    size_up_to_map(reader, address + (ret->size ? ret->size - V8_WORD : 0),
					   end);
	rule = map->type < V8_TYPES ? (enum v8_rule)layout->rules[map->type] : V8_UNKNOWN;
	/* Fillers are of the type before. */
	ret->is_free = map->type == layout->free_type || map->type + 1 == layout->free_type;
	ret->is_plain = is_in_one_piece(layout, map->type) || rule == V8_BYTES ||
			rule == V8_DOUBLES || map->type == layout->number_type;
	return ret->size % V8_WORD == 0 && ret->size <= end - address;
}

/* The text of a string in one piece, from that letter on. */
static size_t read_piece(struct v8_reader *reader, uint64_t address, const struct v8_map *map,
			 uint64_t from, char *ret, size_t size)
{
	const struct v8_layout *layout = reader->layout;
	uint64_t width = (map->type & layout->encoding) == layout->one_byte ? 1 : 2;
	size_t used = 0;

	for (; used < size; used++) {
		uint16_t letter = 0;

		if (!view_read(&reader->view, address + layout->text + (from + used) * width,
			       &letter, width))
			break;
		ret[used] = letter >= ' ' && letter < 0x7f ? (char)letter : '?';
	}
	return used;
}

/*
 * A string that was joined refers to both parts, one that was cut out to the whole and the place in
 * it, and a thin one to another that is the same. Returns how much was read; 0: nothing.
 */
static size_t read_text(struct v8_reader *reader, uint64_t word, uint64_t from, char *ret,
			size_t size, unsigned int depth)
{
	enum { FIRST = 16, SECOND = 24, DEEPEST = 8 };
	const struct v8_layout *layout = reader->layout;
	uint64_t address = word - V8_STRONG, first, second;
	struct v8_map map;
	uint32_t length, representation;
	size_t used;

	if (depth > DEEPEST || !v8_map_of(reader, word, &map) || !is_text(layout, map.type) ||
	    !view_read(&reader->view, address + layout->text_length, &length, sizeof(length)) ||
	    from >= length)
		return 0;
	size = MIN(size, length - from);
	if (is_in_one_piece(layout, map.type))
		return read_piece(reader, address, &map, from, ret, size);
	representation = map.type & layout->representation;
	if (!view_word(&reader->view, address + FIRST, &first))
		return 0;
	if (representation == layout->thin)
		return read_text(reader, first, from, ret, size, depth + 1);
	if (!view_word(&reader->view, address + SECOND, &second))
		return 0;
	if (representation == layout->sliced)
		return read_text(reader, first, from + (second >> 32), ret, size, depth + 1);
	if (representation != layout->joined || from > 0)
		return 0;
	used = read_text(reader, first, 0, ret, size, depth + 1);
	return used + (used && used < size
			       ? read_text(reader, second, 0, ret + used, size - used, depth + 1)
			       : 0);
}

bool v8_read_text(struct v8_reader *reader, uint64_t word, char *ret, size_t size)
{
	size_t used = read_text(reader, word, 0, ret, size - 1, 0);

	ret[used] = '\0';
	return used > 0;
}
