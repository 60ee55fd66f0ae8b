/*
 * Words of MRI that are no addresses, and no values of programs: flags of objects, counts, IDs and
 * shapes, the lines of code, and the texts of names.
 *
 * Names are those of classes and code, and the texts of symbols that have a number from the start:
 * those that code, or C code, has. A symbol that a program makes from a string is an object, and
 * its text is left out. Of containers stay nil, true, false, and symbols with a number; not
 * numbers, and no hash but that of deleted entries.
 */
#include "analyzer/runtimes/ruby/kept.h"

#include "analyzer/runtimes/object_links.h"
#include "analyzer/runtimes/ruby/objects.h"
#include "analyzer/runtimes/ruby/traces.h"
#include "analyzer/runtimes/ruby/unused.h"

enum { WORD = 8, CLASS = 8, CONTENTS = 16, POINTER = 24, LAST = 32 };

/* More items than anything has, and a larger ID. */
static const uint64_t MOST_LENGTH = UINT64_C(1) << 32;

static struct error *keep_length(struct ruby_structure *structure, uint64_t place)
{
	uint64_t word;

	return view_word(&structure->view, place, &word) && word != 0 && word < MOST_LENGTH
		       ? ruby_keep(structure, place, WORD)
		       : NULL;
}

static bool read_table(struct ruby_structure *structure, uint64_t address, struct ruby_table *ret)
{
	enum { MOST_POWER = 40 };

	return address % WORD == 0 && view_read(&structure->view, address, ret, sizeof(*ret)) &&
	       ret->end < MOST_LENGTH && ret->count <= ret->end && ret->first <= ret->end &&
	       (ret->powers & UINT8_MAX) <= MOST_POWER &&
	       ruby_block_size(structure, ret->entries) / sizeof(struct ruby_table_entry) >=
		       ret->end;
}

/* Keep the head of a table, deleted entries, and values that are no numbers. */
static struct error *keep_table(struct ruby_structure *structure, uint64_t address)
{
	enum { POWERS = 3, COUNT = 16, BINS = 24, FIRST = 32, ENTRIES = 48 };
	const uint64_t size = sizeof(struct ruby_table_entry);
	struct ruby_table table;
	uint64_t hash;

	if (!read_table(structure, address, &table))
		return NULL;
	TRY(ruby_keep(structure, address, POWERS));
	TRY(ruby_keep_numbers(structure, address + COUNT, address + BINS));
	TRY(ruby_keep_numbers(structure, address + FIRST, address + ENTRIES));
	for (uint64_t i = table.first; i < table.end; i++) {
		uint64_t at = table.entries + i * size;

		if (view_word(&structure->view, at, &hash) && hash == UINT64_MAX)
			TRY(ruby_keep(structure, at, WORD));
		TRY(ruby_keep_values(structure, at + WORD, 2));
	}
	return NULL;
}

/* Up to 3.1, classes have tables whose keys are IDs; values of the first lead to places. */
static struct error *keep_ids(struct ruby_structure *structure, uint64_t address, bool has_places)
{
	struct ruby_table table;
	uint64_t value;

	if (!read_table(structure, address, &table))
		return NULL;
	for (uint64_t i = table.first; i < table.end; i++) {
		uint64_t key = table.entries + i * sizeof(struct ruby_table_entry) + WORD;

		TRY(keep_length(structure, key));
		if (has_places && view_word(&structure->view, key + WORD, &value) &&
		    ruby_block_size(structure, value))
			TRY(ruby_keep_numbers(structure, value, value + WORD / 2));
	}
	return NULL;
}

/* The target of an item of a table of classes begins with counts or flags, or has its ID. */
static struct error *keep_item(struct ruby_structure *structure, const struct ruby_id_item *item)
{
	enum { ID_SHIFT = 4 };
	uint64_t words[2];

	if (ruby_block_size(structure, item->value) < sizeof(words) ||
	    !view_read(&structure->view, item->value, words, sizeof(words)))
		return NULL;
	TRY(ruby_keep_numbers(structure, item->value, item->value + WORD));
	return words[1] >> ID_SHIFT == item->serial ? ruby_keep(structure, item->value + WORD, WORD)
						    : NULL;
}

static struct error *keep_id_table(struct ruby_structure *structure, uint64_t address)
{
	enum { COUNTS = 12, VALUE = 8 };
	struct ruby_id_table table;
	struct ruby_id_item item;

	if (!ruby_read_id_table(&structure->view, address, &table) ||
	    ruby_block_size(structure, table.items) / sizeof(item) < table.capacity)
		return NULL;
	TRY(ruby_keep(structure, address, COUNTS));
	for (uint64_t i = 0; i < table.capacity; i++) {
		uint64_t at = table.items + i * sizeof(item);

		if (!view_read(&structure->view, at, &item, sizeof(item)))
			break;
		if (item.serial >= structure->ruby->symbols.strings.count || item.collision > 1)
			continue;
		TRY(ruby_keep(structure, at, VALUE));
		if (item.serial == 0)
			continue;
		TRY(ruby_keep_values(structure, at + VALUE, 1));
		TRY(keep_item(structure, &item));
	}
	return NULL;
}

/* Blocks that Ruby lost have IDs and symbols. */
static struct error *keep_lost(struct ruby_structure *structure, allocation_id id,
			       struct memory_range range)
{
	if (!ruby_known_leak(&structure->ruby->space, id))
		return NULL;
	TRY(ruby_keep(structure, range.start, sizeof(uint32_t)));
	for (uint64_t at = range.start; at < range.end; at += WORD)
		TRY(keep_length(structure, at));
	return NULL;
}

/* Tables are found by their form, whosever they are. */
static struct error *keep_block(struct ruby_structure *structure, allocation_id id,
				struct memory_range range)
{
	enum { ROUNDED = 16, MOST_LOST = 520 };
	uint64_t size = range.end - range.start;

	if (size - sizeof(struct ruby_table) <= ROUNDED)
		TRY(keep_table(structure, range.start));
	if (size - sizeof(struct ruby_id_table) <= ROUNDED)
		TRY(keep_id_table(structure, range.start));
	return size <= MOST_LOST ? keep_lost(structure, id, range) : NULL;
}

static struct error *keep_hash(struct ruby_structure *structure, struct memory_range slot,
			       uint64_t flags)
{
	enum { HAS_TABLE = 1 << 15, OLD_SLOT = 40, PAIRS = 8, HINTS = 8, BOUND_SHIFT = 20 };
	bool is_old = slot.end - slot.start == OLD_SLOT;
	uint64_t pairs = slot.start + POINTER + HINTS,
		 bound = flags >> BOUND_SHIFT & (2 * PAIRS - 1);

	TRY(ruby_keep_values(structure, ruby_hash_default(slot.start, slot.end - slot.start), 1));
	if (flags & HAS_TABLE)
		return is_old ? NULL : keep_table(structure, slot.start + POINTER);
	if (is_old && !view_word(&structure->view, slot.start + CONTENTS, &pairs))
		return NULL;
	return pairs ? ruby_keep_values(structure, pairs, 2 * MIN(bound, PAIRS)) : NULL;
}

static struct error *keep_string(struct ruby_structure *structure, struct memory_range slot,
				 uint64_t flags)
{
	enum { NOT_EMBEDDED = 1 << 13 };

	if (!(flags & NOT_EMBEDDED))
		return structure->ruby->slots.has_length_behind
			       ? keep_length(structure, slot.start + CONTENTS)
			       : NULL;
	TRY(keep_length(structure, slot.start + CONTENTS));
	return keep_length(structure, slot.start + LAST);
}

static struct error *keep_array(struct ruby_structure *structure, struct memory_range slot,
				uint64_t flags)
{
	enum { EMBEDDED = 1 << 13 };
	uint64_t elements, count;

	if (!(flags & EMBEDDED)) {
		TRY(keep_length(structure, slot.start + CONTENTS));
		TRY(keep_length(structure, slot.start + POINTER));
	}
	return ruby_read_array(&structure->ruby->slots, &structure->view, slot.start, &elements,
			       &count)
		       ? ruby_keep_values(structure, elements, count)
		       : NULL;
}

/* Members in the slot, or behind their number. */
static struct error *keep_struct(struct ruby_structure *structure, struct memory_range slot,
				 uint64_t flags)
{
	enum { SHIFT = 13, BITS = 0x7f, OLD_BITS = 3 };
	uint64_t count =
		flags >> SHIFT & (structure->ruby->slots.has_length_behind ? BITS : OLD_BITS);
	uint64_t words[2];

	if (count)
		return ruby_keep_values(structure, slot.start + CONTENTS, count);
	if (!view_read(&structure->view, slot.start + CONTENTS, words, sizeof(words)) ||
	    words[0] >= MOST_LENGTH)
		return NULL;
	TRY(keep_length(structure, slot.start + CONTENTS));
	return ruby_keep_values(structure, words[1], words[0]);
}

/* Up to 3.1, | u32 count | values |; later, shapes count them. */
static struct error *keep_variables(struct ruby_structure *structure, struct memory_range slot,
				    uint64_t flags)
{
	const struct ruby *ruby = structure->ruby;
	uint64_t words[2], count = ruby_variable_count(ruby, flags);

	if (ruby_is_embedded(&ruby->slots, flags))
		return ruby_keep_values(structure, slot.start + CONTENTS,
					(slot.end - slot.start - CONTENTS) / WORD);
	if (!view_read(&structure->view, slot.start + CONTENTS, words, sizeof(words)))
		return NULL;
	if (ruby->slots.has_length_behind)
		return count == RUBY_NO_COUNT ? NULL : ruby_keep_values(structure, words[0], count);
	TRY(ruby_keep_numbers(structure, slot.start + CONTENTS, slot.start + CONTENTS + WORD / 2));
	return ruby_keep_values(structure, words[1], (uint32_t)words[0]);
}

/* Up to 3.1, what a class has besides the next one is in a block. */
static struct error *keep_class(struct ruby_structure *structure, struct memory_range slot)
{
	enum { TABLES = 2 };
	struct ruby *ruby = structure->ruby;
	uint64_t extension = 0, size, table;

	TRY(ruby_keep_text(structure, ruby_find_name(&ruby->slots, &structure->view, slot.start)));
	TRY(ruby_keep_numbers(structure, slot.start + CONTENTS, slot.end));
	if (ruby->slots.has_length_behind ||
	    !view_word(&structure->view, slot.start + POINTER, &extension))
		return NULL;
	size = ruby_block_size(structure, extension);
	TRY(ruby_keep_numbers(structure, extension, extension + size));
	for (uint64_t i = 0; i < MIN(size / WORD, TABLES); i++)
		if (view_word(&structure->view, extension + WORD * i, &table))
			TRY(keep_ids(structure, table, i == 0));
	return NULL;
}

/* The buffers of a file are packed, see unused.c: so their addresses are looked for here. */
static struct error *keep_file(struct ruby_structure *structure, struct memory_range slot)
{
	enum { STEP = 4, MOST_BYTES = 512 };
	uint64_t file, size, text;
	struct {
		int32_t first, count, capacity;
	} room;

	if (!view_word(&structure->view, slot.start + CONTENTS, &file))
		return NULL;
	size = MIN(ruby_block_size(structure, file), MOST_BYTES);
	for (uint64_t at = file; at + WORD + sizeof(room) <= file + size; at += STEP)
		if (view_word(&structure->view, at, &text) &&
		    view_read(&structure->view, at + WORD, &room, sizeof(room)) &&
		    room.capacity > 0 &&
		    ruby_block_size(structure, text) >= (uint64_t)room.capacity &&
		    room.first >= 0 && room.count >= 0 && room.first <= room.capacity &&
		    room.count <= room.capacity)
			TRY(ruby_keep(structure, at, WORD + sizeof(room)));
	return NULL;
}

/* Counts at the start of what a word of the object leads to. */
static struct error *keep_counts(struct ruby_structure *structure, uint64_t place, uint64_t offset)
{
	uint64_t block;

	return view_word(&structure->view, place, &block) && ruby_block_size(structure, block)
		       ? ruby_keep_numbers(structure, block + offset, block + offset + WORD)
		       : NULL;
}

/* A Proc has its kind, and perhaps a symbol; a Fiber has the size of its stack, see fibers.c. */
static struct error *keep_data(struct ruby_structure *structure, struct memory_range slot)
{
	enum { KIND = 24, IS_EMBEDDED = 2, MOST_WORDS = 128, SIZE = 16, AVAILABLE = 24 };
	const struct ruby *ruby = structure->ruby;
	uint64_t data, typed, words[4];

	TRY(ruby_keep_numbers(structure, slot.start + CONTENTS, slot.start + LAST));
	if (!view_word(&structure->view, slot.start + POINTER, &typed) ||
	    !view_word(&structure->view, slot.start + LAST, &data))
		return NULL;
	if (typed == (IS_EMBEDDED | 1))
		data = slot.start + LAST;
	if (ruby_is_data(ruby, &structure->view, slot.start, "proc") ||
	    ruby_is_data(ruby, &structure->view, slot.start, "binding")) {
		TRY(ruby_keep_values(structure, data, 1));
		return ruby_keep_numbers(structure, data + KIND, data + KIND + WORD / 2);
	}
	if (!ruby_is_data(ruby, &structure->view, slot.start, "fiber"))
		return NULL;
	for (uint64_t at = data; at < data + (uint64_t)WORD * MOST_WORDS; at += WORD)
		if (view_read(&structure->view, at, words, sizeof(words)) && words[0] &&
		    words[0] % PAGE == 0 && words[1] - words[0] == words[3] &&
		    words[2] % PAGE == 0 && words[3] <= words[2] && words[2] < MOST_LENGTH)
			return ruby_keep(structure, at + SIZE, AVAILABLE - SIZE + WORD);
	return NULL;
}

/* An environment has a count, and flags behind its values; an entry of a method, its ID. */
static struct error *keep_internal(struct ruby_structure *structure, struct memory_range slot,
				   uint64_t flags)
{
	enum { DEFINITION = 16, DEFINITION_END = 48, CALLED = 24, MOST_WORDS = 1 << 16 };
	const struct ruby_slots *slots = &structure->ruby->slots;
	uint64_t words[3], definition;

	switch (ruby_imemo_kind(slots, flags)) {
	case RUBY_ENV:
		if (!view_read(&structure->view, slot.start + CONTENTS, words, sizeof(words)) ||
		    (uint32_t)words[2] > MOST_WORDS)
			return NULL;
		TRY(keep_length(structure, words[0]));
		TRY(ruby_keep_numbers(structure, slot.start + LAST, slot.start + LAST + WORD / 2));
		return ruby_keep_values(structure, words[1], (uint32_t)words[2]);
	case RUBY_METHOD:
		TRY(keep_length(structure, slot.start + CALLED));
		if (!view_word(&structure->view, slot.start + DEFINITION, &definition))
			return NULL;
		return ruby_keep_numbers(
			structure, definition,
			definition + MIN(DEFINITION_END, ruby_block_size(structure, definition)));
	case RUBY_FIELDS:
		return keep_variables(structure, slot, flags);
	case RUBY_CREF:
	case RUBY_SVAR:
	case RUBY_CALLCACHE:
	case RUBY_CONSTCACHE:
		return ruby_keep_values(structure, slot.start + CLASS,
					(slot.end - slot.start - CLASS) / WORD);
	default:
		return NULL;
	}
}

static struct error *keep_object(struct ruby_structure *structure, struct memory_range slot)
{
	uint64_t flags;

	if (!view_word(&structure->view, slot.start, &flags))
		return NULL;
	switch (flags % RUBY_TYPES) {
	case RUBY_STRING:
		return keep_string(structure, slot, flags);
	case RUBY_ARRAY:
		return keep_array(structure, slot, flags);
	case RUBY_HASH:
		return keep_hash(structure, slot, flags);
	case RUBY_STRUCT:
		return keep_struct(structure, slot, flags);
	case RUBY_OBJECT:
		return keep_variables(structure, slot, flags);
	case RUBY_CLASS:
	case RUBY_MODULE:
	case RUBY_ICLASS:
		return keep_class(structure, slot);
	case RUBY_FILE:
		return keep_file(structure, slot);
	case RUBY_MATCH:
		return keep_counts(structure, slot.start + POINTER, 0);
	case RUBY_REGEXP:
		return keep_counts(structure, slot.start + CONTENTS, WORD);
	case RUBY_DATA:
		return keep_data(structure, slot);
	case RUBY_IMEMO:
		return keep_internal(structure, slot, flags);
	default:
		return NULL;
	}
}

static struct error *keep_heap(struct ruby_structure *structure)
{
	const struct allocation_index *index = structure->ruby->space.index;
	size_t hint = 0;

	bitmap_for_each(id, allocation_used(index)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);

		TRY(bitmap_get(&structure->ruby->slots.slots, id)
			    ? keep_object(structure, range)
			    : keep_block(structure, (allocation_id)id, range));
	}
	return NULL;
}

/* Instance variables of what has no room for them: | u32 count | values |. */
static struct error *keep_apart(struct ruby_structure *structure)
{
	const struct allocation_index *index = structure->ruby->space.index;
	const struct ruby *ruby = structure->ruby;

	array_for_each(place, &ruby->apart) {
		uint64_t start = allocation_start(index, place->number);
		uint32_t count;

		if (bitmap_get(&ruby->slots.slots, place->number) ||
		    !view_read(&structure->view, start, &count, sizeof(count)))
			continue;
		TRY(ruby_keep_numbers(structure, start, start + sizeof(count)));
		TRY(ruby_keep_values(structure, start + WORD, count));
	}
	return NULL;
}

/* The texts of symbols that are objects. */
static void note_made(struct ruby_structure *structure)
{
	const struct allocation_index *index = structure->ruby->space.index;
	uint64_t flags, text;
	size_t hint = 0;

	bitmap_for_each(id, &structure->ruby->slots.slots) {
		uint64_t start = allocation_range_near(index, (allocation_id)id, &hint).start;
		allocation_id string = NO_ALLOCATION;

		if (view_word(&structure->view, start, &flags) &&
		    flags % RUBY_TYPES == RUBY_SYMBOL &&
		    view_word(&structure->view, start + POINTER, &text))
			string = allocation_find(index, text);
		if (string != NO_ALLOCATION)
			bitmap_set(&structure->made, string);
	}
}

static struct error *keep_symbols(struct ruby_structure *structure)
{
	bitmap_minus(&structure->made, &structure->made);
	note_made(structure);
	array_for_each(item, &structure->ruby->symbols.strings) {
		uint64_t string = *item & -(uint64_t)WORD;
		allocation_id id = string ? allocation_find(structure->ruby->space.index, string)
					  : NO_ALLOCATION;

		if (id != NO_ALLOCATION && !bitmap_get(&structure->made, id))
			TRY(ruby_keep_text(structure, string));
	}
	return NULL;
}

static struct error *keep_shapes(struct ruby_structure *structure)
{
	enum { LATER_SHAPE = 40 };
	const struct ruby *ruby = structure->ruby;

	if (!ruby->shapes)
		return NULL;
	TRY(ruby_keep(structure, ruby->shape_count_place, sizeof(uint32_t)));
	return ruby_keep(structure, ruby->shapes,
			 ruby->shape_count * (ruby->slots.has_boxes ? (uint64_t)LATER_SHAPE
								    : sizeof(struct ruby_shape)));
}

/* The capacity and the count of a list, which say that it holds nothing. */
static struct error *keep_list_of_old(struct ruby_structure *structure)
{
	struct view view = { structure->ruby->space.image };
	struct ruby_unused search = { structure->ruby, structure->ruby->slots, view, view };
	uint64_t place = ruby_find_list_of_old(&search);

	return place ? ruby_keep(structure, place + WORD, WORD) : NULL;
}

static struct error *keep_all(struct ruby_structure *structure)
{
	TRY(keep_heap(structure));
	TRY(keep_apart(structure));
	TRY(keep_symbols(structure));
	TRY(keep_shapes(structure));
	TRY(keep_list_of_old(structure));
	TRY(ruby_iseqs_keep(&structure->ruby->calls.iseqs, structure));
	TRY(ruby_calls_keep(structure));
	return ruby_traces_keep(structure);
}

struct error *ruby_visit_structure(struct object_space *space,
				   const struct structure_visitor *visitor)
{
	struct ruby *ruby = (struct ruby *)space;
	struct ruby_structure structure = {
		ruby, &ruby->slots, &ruby->symbols, visitor, { space->image }
	};
	struct error *error;

	TRY(bitmap_init(&structure.made, allocation_count(space->index), space->account));
	error = object_find_globals(space, &structure.made);
	if (!error)
		error = ruby_calls_learn(structure.ruby);
	if (!error)
		error = keep_all(&structure);
	bitmap_deinit(&structure.made);
	return error;
}
