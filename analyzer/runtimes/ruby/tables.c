/*
 * Tables of the interpreter: st.h and id_table.c of Ruby 2.4 to 3.4.
 *
 *	st_table	| u8 powers: entries, bins, a bin's size | type | count | bins | start, end
 *| entries | type		| compare | hash | entries		| hash | key | value | ...
 *	rb_id_table	| i32 room, of 4 or more | i32 count | i32 used | items |
 *	items		| u32 serial number | u32 0 or 1 | value | ...
 *
 * Entries are claimed with those of a Hash, in ruby.c, and the table of a Hash in parts.c.
 */
#include "allocators/ruby/ruby.h"
#include "analyzer/classify/classifier.h"
#include "analyzer/runtimes/ruby/slots.h"

enum {
	WORD = 8,
	TYPE = 1,
	COUNT,
	START = 4,
	END,
	ENTRIES,
	TABLE_WORDS,
	ENTRY_WORDS = 3,
	MOST_POWER = 40,
	MOST_SAMPLES = 8,
};

enum kind { FROZEN_STRINGS, INSTANCE_VARIABLES, SYMBOLS, OTHER, ID_TABLE, ID_ITEMS };

static bool is_code(struct reader *reader, uint64_t address)
{
	const struct region *region = image_find(reader->image, address);

	return region && (region->rights & RIGHT_EXECUTE);
}

static bool is_table(struct reader *reader, const uint64_t *words)
{
	uint64_t power = words[0] & UINT8_MAX, functions[2];
	struct memory_range entries;

	return power <= MOST_POWER && words[START] <= words[END] &&
	       words[END] <= UINT64_C(1) << power && words[COUNT] <= words[END] - words[START] &&
	       reader_in_module(reader, words[TYPE]) &&
	       reader_words(reader, words[TYPE], COUNT_OF(functions), functions) &&
	       is_code(reader, functions[0]) && is_code(reader, functions[1]) &&
	       reader_start(reader, words[ENTRIES], &entries) != NO_ALLOCATION &&
	       reader_fits(reader, entries, (uint64_t)WORD * ENTRY_WORDS << power);
}

/* True if the value is a symbol, at once or as an object. */
static bool is_symbol(struct reader *reader, uint64_t value)
{
	enum { AT_ONCE = 0x0c };
	uint64_t flags;

	return (value & UINT8_MAX) == AT_ONCE ||
	       (value % WORD == 0 && reader_word(reader, value, &flags) &&
		(flags & RUBY_TYPE_BITS) == RUBY_SYMBOL);
}

/* True if an allocation begins there that is an object, or else is none. */
static bool begins(struct reader *reader, uint64_t address, bool is_object)
{
	struct memory_range range;
	allocation_id id = reader_start(reader, address, &range);

	return id != NO_ALLOCATION && runtimes_are_certain(reader->runtimes, id) == is_object;
}

static enum kind kind_of_entry(struct reader *reader, uint64_t key, uint64_t value)
{
	uint64_t flags, type;

	if (!begins(reader, key, true) || !reader_word(reader, key, &flags))
		return OTHER;
	type = flags & RUBY_TYPE_BITS;
	if (type == RUBY_STRING && key == value)
		return FROZEN_STRINGS;
	if (type == RUBY_STRING && is_symbol(reader, value))
		return SYMBOLS;
	return (flags & RUBY_HAS_APART) && begins(reader, value, false) ? INSTANCE_VARIABLES
									: OTHER;
}

/* The kind of the first entries, if these are several of one. */
static enum kind kind_of_table(struct reader *reader, const uint64_t *words)
{
	enum kind kind = OTHER;
	unsigned int found = 0;

	for (uint64_t i = words[START]; i < words[END] && found < MOST_SAMPLES; i++) {
		uint64_t entry[ENTRY_WORDS];
		enum kind own;

		if (!reader_words(reader, words[ENTRIES] + WORD * ENTRY_WORDS * i, ENTRY_WORDS,
				  entry))
			return OTHER;
		if (entry[0] == UINT64_MAX) /* deleted */
			continue;
		own = kind_of_entry(reader, entry[1], entry[2]);
		if (own == OTHER || (found++ && own != kind))
			return OTHER;
		kind = own;
	}
	return found > 1 ? kind : OTHER;
}

static void inspect(struct reader *reader, const struct subject *subject)
{
	uint64_t words[TABLE_WORDS];

	memcpy(words, subject->bytes, sizeof(words));
	if (reader_fits(reader, subject->range, sizeof(words)) && is_table(reader, words) &&
	    kind_of_table(reader, words) == (enum kind)reader_kind(reader))
		reader_claim(reader, subject->id, 0);
}

/* True if the first items of an id_table are such. */
static bool are_items(struct reader *reader, uint64_t address, uint32_t room)
{
	enum { ITEM_WORDS = 2 };
	uint64_t item[ITEM_WORDS];

	for (uint32_t i = 0; i < room && i < MOST_SAMPLES; i++, address += sizeof(item))
		if (!reader_words(reader, address, ITEM_WORDS, item) || item[0] >> 32 > 1 ||
		    ((uint32_t)item[0] && !item[1]))
			return false;
	return true;
}

static void inspect_ids(struct reader *reader, const struct subject *subject)
{
	enum { ITEMS = 2, ID_WORDS, ITEM_SIZE = 16, LEAST = 4 };
	uint64_t words[ID_WORDS];
	uint32_t room, count, used;
	struct memory_range range;
	allocation_id items;

	memcpy(words, subject->bytes, sizeof(words));
	room = (uint32_t)words[0];
	count = (uint32_t)(words[0] >> 32);
	used = (uint32_t)words[1];
	if (room < LEAST || (room & (room - 1)) || count > used || used > room ||
	    !reader_fits(reader, subject->range, sizeof(words)))
		return;
	items = reader_start(reader, words[ITEMS], &range);
	if (items == NO_ALLOCATION || !reader_fits(reader, range, (uint64_t)ITEM_SIZE * room) ||
	    !are_items(reader, range.start, room))
		return;
	if (reader_kind(reader) == ID_TABLE)
		reader_claim(reader, subject->id, 0);
	else
		reader_claim(reader, items, subject->range.start);
}

extern const struct runtime runtime_ruby;

/* A Hash's table is more than that, as are parts of objects. */
#define TABLE(...)                                                                \
	.runtime = &runtime_ruby, .strength = STRENGTH_CHAIN, .inspect = inspect, \
	.is_whole = true, .least_size = WORD * TABLE_WORDS, __VA_ARGS__
#define IDS(...)                                                                      \
	.runtime = &runtime_ruby, .strength = STRENGTH_CHAIN, .inspect = inspect_ids, \
	.least_size = 3 * WORD, __VA_ARGS__

CLASSIFIER(ruby_frozen_strings, "RubyFrozenStrings", "the table of Ruby's frozen Strings by text",
	   "the table of frozen Strings", TABLE(.kind = FROZEN_STRINGS));
CLASSIFIER(ruby_generic_variables, "RubyGenericVariables",
	   "the table of instance variables of what is no Object: Strings, Arrays, Hashes",
	   "the table of such objects' instance variables", TABLE(.kind = INSTANCE_VARIABLES));
CLASSIFIER(ruby_symbols, "RubySymbols", "the table of Ruby's Symbols by name",
	   "the table of Symbols", TABLE(.kind = SYMBOLS));
CLASSIFIER(ruby_table, "RubyTable", "a hash table of Ruby's interpreter or of an extension in C",
	   "a table of the interpreter", TABLE(.kind = OTHER));
CLASSIFIER(ruby_id_table, "RubyIdTable",
	   "a table by name: the methods, constants or call caches of a class, global variables",
	   "a table by name", IDS(.kind = ID_TABLE));
CLASSIFIER(ruby_id_items, "RubyIdItems", "the items of a table by name of Ruby",
	   "the items of the table", IDS(.kind = ID_ITEMS));
