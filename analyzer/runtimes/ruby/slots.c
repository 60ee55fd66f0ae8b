#include "analyzer/runtimes/ruby/slots.h"

#include "allocators/ruby/ruby.h"

#include <ctype.h>

enum {
	WORD = 8,
	/* Fields of all objects. */
	CLASS = 8,
	/* Fields of classes. */
	SUPER = 16,
	LATER_SUPER = 32, /* from 4.0 on, behind object_id and box */
	LATER_ATTACHED = 136,
	EXTENSION = 24, /* up to 3.1, it is apart */
	FIRST_MEMBER = 3,
	MOST_BASES = 256,
	SLOT_WORDS = (RUBY_BASE_SLOT << (RUBY_SLOT_SIZES - 1)) / WORD,
	NOT_EMBEDDED = 1 << 13, /* of strings */
	SINGLETON = 1 << 12,	/* up to 3.3 */
	LATER_SINGLETON = 1 << 13,
};

uint64_t ruby_slot_flags(const struct ruby_slots *slots, struct view *view, uint64_t address)
{
	allocation_id id = address ? allocation_find(slots->index, address) : NO_ALLOCATION;
	uint64_t flags;

	if (id == NO_ALLOCATION || !bitmap_get(&slots->slots, id) ||
	    allocation_start(slots->index, id) != address || !view_word(view, address, &flags))
		return 0;
	return flags;
}

static unsigned int type_at(const struct ruby_slots *slots, struct view *view, uint64_t address)
{
	return ruby_slot_flags(slots, view, address) & RUBY_TYPE_BITS;
}

static bool is_printable(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] <= ' ' || text[i] == '\x7f')
			return false;
	return length > 0;
}

/*
 * struct RString: up to 3.1, the length of one that is embedded is in its flags, and the text
 * follows the class; later, the length follows the class.
 */
bool ruby_find_text(const struct ruby_slots *slots, struct view *view, uint64_t address,
		    uint64_t *ret_text, uint64_t *ret_length)
{
	enum { LENGTH = 16, TEXT = 24, SHIFT = 14, EMBEDDED_BITS = 0x1f };
	uint64_t flags = ruby_slot_flags(slots, view, address);

	*ret_text = address + TEXT;
	if ((flags & RUBY_TYPE_BITS) != RUBY_STRING ||
	    !view_word(view, address + LENGTH, ret_length))
		return false;
	if (flags & NOT_EMBEDDED)
		return view_word(view, address + TEXT, ret_text);
	if (!slots->has_length_behind) {
		*ret_length = flags >> SHIFT & EMBEDDED_BITS;
		*ret_text = address + LENGTH;
	}
	return true;
}

bool ruby_read_text(const struct ruby_slots *slots, struct view *view, uint64_t address, char *ret,
		    size_t size)
{
	uint64_t text, length;

	if (!ruby_find_text(slots, view, address, &text, &length))
		return false;
	length = MIN(length, size - 1);
	if (!view_read(view, text, ret, length))
		return false;
	ret[length] = '\0';
	return length > 0;
}

uint64_t ruby_text_length(const struct ruby_slots *slots, struct view *view, uint64_t address)
{
	uint64_t text, length;

	return ruby_find_text(slots, view, address, &text, &length) ? length : 0;
}

bool ruby_read_string(const struct ruby_slots *slots, struct view *view, uint64_t address,
		      char ret[RUBY_MOST_NAME + 1])
{
	uint64_t text, length;

	if (!ruby_find_text(slots, view, address, &text, &length) || length > RUBY_MOST_NAME ||
	    !view_read(view, text, ret, length))
		return false;
	ret[length] = '\0';
	return is_printable(ret, length);
}

/* struct RArray: embedded elements follow the class, and their number is in the flags. */
bool ruby_read_array(const struct ruby_slots *slots, struct view *view, uint64_t address,
		     uint64_t *ret_elements, uint64_t *ret_count)
{
	enum { EMBEDDED = 1 << 13, COUNT_SHIFT = 15, COUNT_BITS = 0x7f, OLD_COUNT_BITS = 3 };
	enum { ELEMENTS = 16, LENGTH = 16, POINTER = 32 };
	uint64_t flags = ruby_slot_flags(slots, view, address);

	if ((flags & RUBY_TYPE_BITS) != RUBY_ARRAY)
		return false;
	if (!(flags & EMBEDDED))
		return view_word(view, address + LENGTH, ret_count) &&
		       view_word(view, address + POINTER, ret_elements);
	*ret_elements = address + ELEMENTS;
	*ret_count =
		flags >> COUNT_SHIFT & (slots->has_length_behind ? COUNT_BITS : OLD_COUNT_BITS);
	return true;
}

/* struct RString and RArray: what is not embedded has its capacity or the other object there. */
uint64_t ruby_shared_with(const struct ruby_slots *slots, struct view *view, uint64_t address)
{
	enum { OF_STRING = 32, OF_ARRAY = 24, ARRAY_EMBEDDED = 1 << 13 };
	uint64_t flags = ruby_slot_flags(slots, view, address), type = flags & RUBY_TYPE_BITS,
		 other;
	bool is_string = type == RUBY_STRING && (flags & NOT_EMBEDDED);

	if (!is_string && (type != RUBY_ARRAY || (flags & ARRAY_EMBEDDED)))
		return 0;
	if (!view_word(view, address + (is_string ? OF_STRING : OF_ARRAY), &other) ||
	    type_at(slots, view, other) != type)
		return 0;
	return other;
}

/* True if it is the name of a constant, as most classes have: "Net::HTTP". */
static bool is_constant(const char *name)
{
	bool begins = true;

	for (; *name; name++) {
		if (begins && !isupper((unsigned char)*name))
			return false;
		begins = name[0] == ':' && name[1] == ':';
		if (begins)
			name++;
		else if (!isalnum((unsigned char)*name) && *name != '_')
			return false;
	}
	return !begins;
}

static bool is_name(const struct ruby_slots *slots, struct view *view, uint64_t address)
{
	char name[RUBY_MOST_NAME + 1];

	return ruby_read_string(slots, view, address, name) && is_constant(name);
}

/* The entries of a table of a class: struct st_table, include/ruby/st.h. */
struct table {
	uint64_t entries, count;
};

struct entry {
	uint64_t hash, key, value;
};

/* Up to 3.1, the second word of a class's extension leads to the table. */
static bool read_table(struct view *view, uint64_t address, struct table *ret)
{
	enum { TABLE = 8, MOST_ENTRIES = 1 << 16 };
	struct {
		uint64_t powers, type, count, bins, first, end, entries;
	} table;
	uint64_t extension, at;

	if (!view_word(view, address + EXTENSION, &extension) || extension == 0 ||
	    !view_word(view, extension + TABLE, &at) || at == 0 ||
	    !view_read(view, at, &table, sizeof(table)) || table.end > MOST_ENTRIES ||
	    table.count > table.end)
		return false;
	*ret = (struct table){ table.entries, table.end };
	return true;
}

/* Call visit for each class and module. */
static void visit_classes(const struct ruby_slots *slots, struct view *view,
			  void (*visit)(const struct ruby_slots *slots, struct view *view,
					uint64_t address, uint64_t size, void *data),
			  void *data)
{
	size_t hint = 0;

	bitmap_for_each(id, &slots->slots) {
		struct memory_range range =
			allocation_range_near(slots->index, (allocation_id)id, &hint);
		uint64_t flags;

		if (!view_word(view, range.start, &flags))
			continue;
		flags &= RUBY_TYPE_BITS;
		if (flags == RUBY_CLASS || flags == RUBY_MODULE)
			visit(slots, view, range.start, range.end - range.start, data);
	}
}

enum { MOST_KEYS = 64 };

struct votes {
	size_t classes;
	size_t words[SLOT_WORDS]; /* which one of a class leads to its name */
	size_t singletons[2];	  /* which flag the class of a class has */
	size_t supers[2];	  /* which word leads to a class */
	struct {
		uint64_t key;
		size_t count;
	} keys[MOST_KEYS];
};

static void vote_for_key(struct votes *votes, uint64_t key)
{
	for (size_t i = 0; i < MOST_KEYS; i++) {
		if (votes->keys[i].count > 0 && votes->keys[i].key != key)
			continue;
		votes->keys[i].key = key;
		votes->keys[i].count++;
		return;
	}
}

static void vote_by_table(const struct ruby_slots *slots, struct view *view, uint64_t address,
			  struct votes *votes)
{
	struct table table;
	struct entry entry;

	if (!read_table(view, address, &table))
		return;
	for (uint64_t i = 0; i < table.count; i++)
		if (view_read(view, table.entries + i * sizeof(entry), &entry, sizeof(entry)) &&
		    is_name(slots, view, entry.value))
			vote_for_key(votes, entry.key);
}

static bool is_class(const struct ruby_slots *slots, struct view *view, uint64_t address)
{
	unsigned int type = type_at(slots, view, address);

	return type == RUBY_CLASS || type == RUBY_MODULE || type == RUBY_ICLASS;
}

static void vote(const struct ruby_slots *slots, struct view *view, uint64_t address, uint64_t size,
		 void *data)
{
	struct votes *votes = data;
	uint64_t words[SLOT_WORDS], class;

	if (size > sizeof(words) || !view_read(view, address, words, size))
		return;
	votes->classes++;
	for (size_t i = FIRST_MEMBER; i < size / WORD; i++)
		votes->words[i] += is_name(slots, view, words[i]);
	vote_by_table(slots, view, address, votes);
	votes->supers[0] += is_class(slots, view, words[SUPER / WORD]);
	votes->supers[1] += is_class(slots, view, words[LATER_SUPER / WORD]);
	class = ruby_slot_flags(slots, view, words[CLASS / WORD]);
	class &= ~words[0]; /* 2.7 has the other flag for something else, in both */
	votes->singletons[0] += (class & SINGLETON) != 0;
	votes->singletons[1] += (class & LATER_SINGLETON) != 0;
}

/* Find out where names are. */
static void learn(struct ruby_slots *slots)
{
	struct view view = { slots->image };
	struct votes votes = { 0 };
	size_t best = 0, best_key = 0;

	visit_classes(slots, &view, vote, &votes);
	for (size_t i = 0; i < SLOT_WORDS; i++)
		if (votes.words[i] > votes.words[best])
			best = i;
	for (size_t i = 0; i < MOST_KEYS; i++)
		if (votes.keys[i].count > votes.keys[best_key].count)
			best_key = i;
	if (votes.words[best] > votes.classes / 4)
		slots->name_word = (uint32_t)best;
	else if (votes.keys[best_key].count > 0)
		slots->name_key = votes.keys[best_key].key;
	slots->has_boxes = votes.supers[1] > votes.supers[0];
	slots->singleton = votes.singletons[1] > votes.singletons[0] ? LATER_SINGLETON : SINGLETON;
}

static void find_slots(struct ruby_slots *slots)
{
	const struct allocation_index *index = slots->index;
	struct view view = { slots->image };
	struct ruby_page page;

	for (size_t i = 0; i < heap_region_count(index); i++) {
		const struct heap_region *region = heap_region(index, i);

		if (region->start % RUBY_SMALL_PAGE != 0 ||
		    !ruby_read_page(&view, region->start, &page) || region->count != page.slots)
			continue;
		slots->has_length_behind |= page.slot_size > RUBY_BASE_SLOT;
		for (allocation_id id = region->first; id < region->first + region->count; id++)
			bitmap_set(&slots->slots, id);
	}
	bitmap_and(&slots->slots, allocation_used(index));
}

struct error *ruby_slots_find(struct ruby_slots *slots, const struct runtime_context *context)
{
	*slots = (struct ruby_slots){ .image = context->image, .index = context->index };
	TRY(bitmap_init(&slots->slots, allocation_count(context->index), context->account));
	find_slots(slots);
	return NULL;
}

struct error *ruby_slots_init(struct ruby_slots *slots, const struct runtime_context *context)
{
	TRY(ruby_slots_find(slots, context));
	learn(slots);
	return NULL;
}

void ruby_slots_deinit(struct ruby_slots *slots)
{
	bitmap_deinit(&slots->slots);
}

static uint64_t find_in_table(const struct ruby_slots *slots, struct view *view, uint64_t address)
{
	struct table table;
	struct entry entry;

	if (slots->name_key == 0 || !read_table(view, address, &table))
		return 0;
	for (uint64_t i = 0; i < table.count; i++)
		if (view_read(view, table.entries + i * sizeof(entry), &entry, sizeof(entry)) &&
		    entry.key == slots->name_key)
			return entry.value;
	return 0;
}

uint64_t ruby_find_name(const struct ruby_slots *slots, struct view *view, uint64_t address)
{
	uint64_t name;

	if (slots->name_word == 0)
		return find_in_table(slots, view, address);
	return view_word(view, address + (uint64_t)WORD * slots->name_word, &name) ? name : 0;
}

bool ruby_read_name(const struct ruby_slots *slots, struct view *view, uint64_t address,
		    char ret[RUBY_MOST_NAME + 1])
{
	return ruby_read_string(slots, view, ruby_find_name(slots, view, address), ret);
}

uint64_t ruby_super(const struct ruby_slots *slots, struct view *view, uint64_t address)
{
	uint64_t super;

	if (!is_class(slots, view, address) ||
	    !view_word(view, address + (slots->has_boxes ? LATER_SUPER : SUPER), &super))
		return 0;
	return super;
}

uint64_t ruby_real_class(const struct ruby_slots *slots, struct view *view, uint64_t address)
{
	for (int i = 0; i < MOST_BASES; i++) {
		uint64_t flags = ruby_slot_flags(slots, view, address);
		unsigned int type = flags & RUBY_TYPE_BITS;

		if (type != RUBY_ICLASS && type != RUBY_CLASS)
			return 0;
		if (type == RUBY_CLASS && !(flags & slots->singleton))
			return address;
		address = ruby_super(slots, view, address);
	}
	return 0;
}

/* True if the singleton class belongs to the object, whose class it then is. */
static bool is_attached(const struct ruby_slots *slots, struct view *view, uint64_t address,
			uint64_t object)
{
	unsigned int type = type_at(slots, view, object);
	uint64_t class;

	return type != 0 && type != RUBY_IMEMO && view_word(view, object + CLASS, &class) &&
	       class == address;
}

/* Up to 3.1, it is in the table, later in the class itself. */
uint64_t ruby_attached(const struct ruby_slots *slots, struct view *view, uint64_t address)
{
	uint64_t flags = ruby_slot_flags(slots, view, address), word;
	struct table table;
	struct entry entry;

	if ((flags & RUBY_TYPE_BITS) != RUBY_CLASS || !(flags & slots->singleton))
		return 0;
	if (slots->name_word == 0 && read_table(view, address, &table))
		for (uint64_t i = 0; i < table.count; i++)
			if (view_read(view, table.entries + i * sizeof(entry), &entry,
				      sizeof(entry)) &&
			    is_attached(slots, view, address, entry.value))
				return entry.value;
	if (slots->has_boxes)
		return view_word(view, address + LATER_ATTACHED, &word) &&
				       is_attached(slots, view, address, word)
			       ? word
			       : 0;
	for (size_t i = FIRST_MEMBER; slots->name_word && i < SLOT_WORDS / 4; i++)
		if (view_word(view, address + i * WORD, &word) &&
		    is_attached(slots, view, address, word))
			return word;
	return 0;
}
