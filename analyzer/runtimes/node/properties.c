/*
 * The properties of objects.
 *
 *	object	| map | properties | elements | values ...
 *
 * Names, and where values are, stand with the map (DescriptorArray): in the object, or, once there
 * is no more room, in its properties (PropertyArray). Of objects with many properties, or of which
 * some were deleted, these are a table (NameDictionary); the global object has one of cells
 * (GlobalDictionary). src/objects/property-details.h and dictionary.h of V8 10.2 and 11.3.
 */
#include "analyzer/runtimes/node/node.h"

enum {
	PROPERTIES = 8,
	MAP_VALUES = 9, /* the words before the values */
	MAP_BITS = 16,
	MAP_DESCRIPTORS = 40,
	DESCRIPTORS = 24, /* before the first; also the size of each: name, details, value */
	ITEMS = 16,
	ENTRY = 3, /* name, value, details */
	CELL_NAME = 8,
	CELL_VALUE = 24,
	MOST_DESCRIPTORS = 1 << 10,
	MOST_ENTRIES = 1 << 24,
};

/* A reader of the properties of an object. */
struct visit {
	struct v8_reader *reader;
	uint64_t object;
	struct v8_map map;
	property_visitor *visit;
	void *data;
};

static bool word_at(const struct visit *visit, uint64_t address, uint64_t *ret)
{
	return view_word(&visit->reader->view, address, ret);
}

/* Read the value of the property with that number. */
static bool read_field(const struct visit *visit, uint32_t number, uint64_t *ret)
{
	uint32_t words = visit->map.size / V8_WORD;
	uint64_t properties;
	uint8_t first;

	if (!view_read(&visit->reader->view, visit->map.address + MAP_VALUES, &first, 1))
		return false;
	if (first <= words && number < words - first)
		return word_at(visit, visit->object + ((uint64_t)first + number) * V8_WORD, ret);
	return first <= words && word_at(visit, visit->object + PROPERTIES, &properties) &&
	       (properties & V8_TAGS) == V8_STRONG &&
	       word_at(visit,
		       properties - V8_STRONG + ITEMS +
			       (uint64_t)(number - (words - first)) * V8_WORD,
		       ret);
}

static bool visit_fast(const struct visit *visit, uint32_t bits)
{
	const struct v8_layout *layout = visit->reader->layout;
	uint32_t count = (bits & layout->count_mask) >> layout->count_shift;
	uint64_t descriptors, words[3];

	if (count > MOST_DESCRIPTORS ||
	    !word_at(visit, visit->map.address + MAP_DESCRIPTORS, &descriptors))
		return false;
	for (uint32_t i = 0; i < count && v8_step(visit->reader); i++) {
		uint32_t details;

		if (!view_read(&visit->reader->view,
			       descriptors - V8_STRONG + DESCRIPTORS * (i + 1ULL), words,
			       sizeof(words)))
			return false;
		details = (uint32_t)(words[1] >> 32);
		/* Else the value stands with the name, as it is the same for all. */
		if (!(details & layout->location_mask) &&
		    !read_field(visit, (details & layout->index_mask) >> layout->index_shift,
				&words[2]))
			continue;
		if (visit->visit(visit->data, words[0], words[2]))
			return true;
	}
	return false;
}

/* Entries that are free have words that are no names. */
static bool visit_table(const struct visit *visit)
{
	bool is_global = visit->map.type == visit->reader->layout->global_type;
	uint32_t size = is_global ? 1 : ENTRY;
	uint64_t table, length, name, value;

	if (!word_at(visit, visit->object + PROPERTIES, &table) || (table & V8_TAGS) != V8_STRONG ||
	    !word_at(visit, table - V8_STRONG + V8_WORD, &length))
		return false;
	length >>= 32;
	table += ITEMS - V8_STRONG;
	if (length > MOST_ENTRIES)
		return false;
	for (uint64_t i = visit->reader->layout->dictionary;
	     i + size <= length && v8_step(visit->reader); i += size) {
		if (!word_at(visit, table + i * V8_WORD, &name))
			return false;
		if (is_global) {
			struct v8_map map;
			uint64_t cell = name - V8_STRONG;

			if (!v8_map_of(visit->reader, name, &map) ||
			    map.type != visit->reader->layout->cell_type ||
			    !word_at(visit, cell + CELL_NAME, &name) ||
			    !word_at(visit, cell + CELL_VALUE, &value))
				continue;
		} else if (!word_at(visit, table + (i + 1) * V8_WORD, &value)) {
			return false;
		}
		if (visit->visit(visit->data, name, value))
			return true;
	}
	return false;
}

static bool says_table(const struct v8_layout *layout, uint32_t bits)
{
	return bits >> (layout->dictionary_shift & 31) & 1;
}

bool node_has_table(struct v8_reader *reader, const struct v8_map *map)
{
	uint32_t bits;

	return view_read(&reader->view, map->address + MAP_BITS, &bits, sizeof(bits)) &&
	       says_table(reader->layout, bits);
}

bool node_visit_properties(struct v8_reader *reader, uint64_t address, property_visitor *visit,
			   void *data)
{
	struct visit each = { reader, address, { 0 }, visit, data };
	uint32_t bits;

	if (!v8_map_of(reader, address + V8_STRONG, &each.map) ||
	    !v8_is_script(reader->layout, each.map.type) ||
	    !view_read(&reader->view, each.map.address + MAP_BITS, &bits, sizeof(bits)))
		return false;
	return says_table(reader->layout, bits) ? visit_table(&each) : visit_fast(&each, bits);
}
