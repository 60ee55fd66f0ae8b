/*
 * MRI, Ruby's interpreter, 2.x to 4.0.
 *
 * Objects are slots of pages, see allocators/ruby/ruby.h, and objects.h here.
 */
#include "allocators/ruby/ruby.h"
#include "analyzer/runtimes/object_items.h"
#include "analyzer/runtimes/ruby/frames.h"
#include "analyzer/runtimes/ruby/links.h"
#include "analyzer/runtimes/ruby/objects.h"
#include "analyzer/runtimes/ruby/slots.h"
#include "analyzer/runtimes/ruby/space.h"
#include "analyzer/runtimes/ruby/unused.h"
#include "analyzer/runtimes/ruby/values.h"

enum { WORD = 8 };

/* Flags of objects. */
enum {
	FLAG_1 = 1 << 13, /* of arrays: embedded; of strings: not */
	FLAG_2 = 1 << 14, /* shared */
};

static uint64_t measure_page(const struct image *image, uint64_t address)
{
	struct view view = { image };
	struct ruby_page page;

	return ruby_read_page(&view, address, &page) ? ruby_page_size(&page) : 0;
}

static const struct object_pages pages = {
	.name = "Ruby's objects",
	.alignment = { RUBY_SMALL_PAGE },
	.measure = measure_page,
	.is_certain = true,
};

/* A Fixnum: 2n + 1. */
static void decode(const uint64_t *words, size_t count, uint64_t *ret)
{
	for (size_t i = 0; i < count; i++)
		ret[i] = words[i] & 1 ? words[i] >> 1 : 0;
}

/* Not in a slot of an object that holds no VALUE there. */
static bool check(const struct image *image, uint64_t place, uint64_t address)
{
	static const uint64_t sizes[] = { RUBY_SMALL_PAGE, RUBY_LARGE_PAGE };
	/* none, float, string, big number, zombie, moved */
	static const uint32_t valueless =
		1U << 0 | 1U << 4 | 1U << RUBY_STRING | 1U << 10 | 1U << 29 | 1U << 30;
	struct view view = { image };
	struct ruby_page page;
	uint64_t flags;

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		if (!ruby_read_page(&view, place & ~(sizes[i] - 1), &page) ||
		    place < page.first_slot || place >= ruby_slots_end(&page))
			continue;
		place -= (place - page.first_slot) % page.slot_size;
		return !image_read_u64(image, place, &flags) ||
		       !(valueless >> (flags & RUBY_TYPE_BITS) & 1);
	}
	return true;
}

static const struct integer_encoding integer = {
	.name = "Ruby Integer",
	.decode = { decode },
	.check = check,
};

const struct runtime runtime_ruby = {
	.name = "ruby",
	.modules = "ruby|libruby|=ruby_init",
	.space_size = sizeof(struct ruby),
	.is_certain = true,
	.packed = "catch table", /* of rescue and ensure, in iseqs */
	.integer = &integer,
	.pages = &pages,
	.leaks_note =
		"Ruby is loaded, but no pages of its objects were found: what they refer to is not leaked, though Ruby may have dropped them",
	.teardown = { "ruby_vm_destruct", "ruby_run_node" },
	FILL_SLOTS(RUBY_SLOTS),
	.fibers = &(const struct runtime_fibers){ FILL_SLOTS(RUBY_FIBER_SLOTS) },
	.calls = &(const struct runtime_calls){ FILL_SLOTS(RUBY_CALL_SLOTS) },
	.links = &(const struct runtime_links){ FILL_SLOTS(RUBY_LINK_SLOTS), .steps = ruby_steps },
};

/*
 * True if an object that begins with these words has that type and memory of its own: neither
 * embedded nor shared.
 */
static bool holds_memory(struct reader *reader, const uint64_t *words, uint64_t type)
{
	uint64_t wanted = type == RUBY_STRING ? FLAG_1 : 0, class_flags;

	return (words[0] & RUBY_TYPE_BITS) == type && (words[0] & (FLAG_1 | FLAG_2)) == wanted &&
	       words[1] % WORD == 0 && reader_word(reader, words[1], &class_flags) &&
	       (class_flags & RUBY_TYPE_BITS) == RUBY_CLASS;
}

static bool read_array(struct reader *reader, struct memory_range range, const uint64_t *words,
		       struct item_contents *ret)
{
	return object_items_fit(reader, range, words[2], words[3], ret) &&
	       holds_memory(reader, words, RUBY_ARRAY);
}

/* One byte more ends the text, or a few in encodings of wider characters. */
static bool read_string(struct reader *reader, struct memory_range range, const uint64_t *words,
			struct item_contents *ret)
{
	uint64_t length = words[2], capacity = words[4];

	*ret = (struct item_contents){
		.asked = capacity + 1,
		.live_end = length + 1,
		.length = length,
		.capacity = capacity,
	};
	return length <= capacity && capacity < range_size(range) &&
	       reader_fits(reader, range, capacity + 1) && holds_memory(reader, words, RUBY_STRING);
}

/* The type is constant memory of the interpreter. Entries in between may have been deleted. */
static bool read_table(struct reader *reader, struct memory_range range, const uint64_t *words,
		       struct item_contents *ret)
{
	enum { TYPE = 1, COUNT = 2, FIRST = 4, BOUND = 5, ENTRY = 24, MOST_POWER = 40 };
	uint64_t power = words[0] & UINT8_MAX, capacity;

	if (power > MOST_POWER)
		return false;
	capacity = UINT64_C(1) << power;
	*ret = (struct item_contents){
		.asked = ENTRY * capacity,
		.live_start = ENTRY * words[FIRST],
		.live_end = ENTRY * words[BOUND],
		.length = words[COUNT],
		.capacity = capacity,
	};
	return words[FIRST] <= words[BOUND] && words[BOUND] <= capacity &&
	       words[COUNT] <= words[BOUND] - words[FIRST] &&
	       reader_fits(reader, range, ENTRY * capacity) &&
	       reader_in_module(reader, words[TYPE]);
}

/*
 * An instruction is its operation's address in the interpreter's code, followed by its operands, a
 * word each.
 */
static bool read_body(struct reader *reader, struct memory_range range, const uint64_t *words,
		      struct item_contents *ret)
{
	enum { MOST_TYPE = 9 };
	uint64_t count = words[0] >> 32, operation;
	const struct region *region;

	*ret = (struct item_contents){
		.asked = WORD * count,
		.live_end = WORD * count,
		.length = count,
	};
	if ((uint32_t)words[0] > MOST_TYPE || !count || !reader_fits(reader, range, WORD * count) ||
	    !reader_word(reader, range.start, &operation) || !reader_in_module(reader, operation))
		return false;
	region = image_find(reader->image, operation);
	return region && (region->rights & RIGHT_EXECUTE);
}

/* Tables of 16 entries or fewer have no bins; others have two for each entry (st.c). */
static bool read_bins(struct reader *reader, struct memory_range range, const uint64_t *words,
		      struct item_contents *ret)
{
	enum { TYPE = 1, COUNT = 2, FIRST = 4, BOUND = 5, LEAST_POWER = 5, MOST_POWER = 40 };
	uint64_t entries = words[0] & UINT8_MAX, bins = words[0] >> 8 & UINT8_MAX;
	uint64_t size = words[0] >> 16 & UINT8_MAX;

	if (entries < LEAST_POWER || entries > MOST_POWER || bins != entries + 1 ||
	    size > bins / 8 || words[BOUND] > UINT64_C(1) << entries)
		return false;
	*ret = (struct item_contents){
		.asked = UINT64_C(1) << (bins + size),
		.live_end = UINT64_C(1) << (bins + size),
		.length = UINT64_C(1) << bins,
	};
	return words[FIRST] <= words[BOUND] && words[COUNT] <= words[BOUND] - words[FIRST] &&
	       reader_fits(reader, range, ret->asked) && reader_in_module(reader, words[TYPE]);
}

enum { ARRAY_ELEMENTS, HASH_BINS, HASH_ENTRIES, INSTRUCTIONS, STRING_TEXT };

static const struct item_layout layouts[] = {
	/* struct RArray: | flags | class | length | capacity | elements | */
	[ARRAY_ELEMENTS] = { 5, 4, read_array, "elements", "spare capacity of an Array" },
	/*
	 * struct st_table, include/ruby/st.h: | powers of entries and bins, ... | type | entries in
	 * use | bins | first entry | end of the last | entries |
	 */
	[HASH_BINS] = { 6, 3, read_bins, "bins" },
	[HASH_ENTRIES] = { 7, 6, read_table, "entries", "spare capacity of a Hash" },
	/* struct rb_iseq_constant_body, vm_core.h: | u32 type, u32 words | instructions | */
	[INSTRUCTIONS] = { 2, 1, read_body, "words" },
	/* struct RString: | flags | class | length | text | capacity | */
	[STRING_TEXT] = { 5, 3, read_string, "bytes", "unused end of a String" },
};

static void match(struct reader *reader, const struct reference *reference)
{
	object_items_match(&layouts[reader_kind(reader)], reader, reference);
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	object_items_tell(&layouts[reader_kind(reader)], reader, range, facts);
}

#define RUBY(...)                                                                            \
	.runtime = &runtime_ruby, .strength = STRENGTH_MARKED, .match = match, .tell = tell, \
	.measures = true, __VA_ARGS__

CLASSIFIER(ruby_array_elements, "RubyArrayElements", "the elements of an Array of Ruby",
	   "the elements of the Array", RUBY(.kind = ARRAY_ELEMENTS));
CLASSIFIER(ruby_hash_bins, "RubyHashBins", "the bins of a Hash of Ruby, or of a table of its own",
	   "the bins of the table", RUBY(.kind = HASH_BINS));
CLASSIFIER(ruby_hash_entries, "RubyHashEntries",
	   "the entries of a Hash of Ruby, or of a table of its own", "the entries of the table",
	   RUBY(.kind = HASH_ENTRIES));
CLASSIFIER(ruby_instructions, "RubyInstructions", "the code of a method or block of Ruby",
	   "the instructions of the iseq", RUBY(.kind = INSTRUCTIONS));
CLASSIFIER(ruby_string_text, "RubyStringText", "the text of a String of Ruby",
	   "the text of the String", RUBY(.kind = STRING_TEXT));
