/*
 * Weak references of MRI, gc.c, transient_heap.c, weakmap.c, symbol.c, string.c, variable.c and
 * gc/default/default.c.
 *
 *	struct rb_objspace | ... sorted pages * ... | finalizers * | ids * | ... mark stack * | ...
 *| sorted pages       | struct heap_page * | struct heap_page * | ... mark stack         | 500
 *objects | next |
 *
 * What the collector has for itself leads to objects, or their slots, and holds none: pages, ranges
 * of memory, lists of free slots, the stack of what is to be marked. Its tables know objects that
 * have finalizers or an object_id. Others are known by what they have.
 */
#include "analyzer/runtimes/module_data.h"
#include "analyzer/runtimes/ruby/objects.h"
#include "analyzer/runtimes/ruby/unused.h"

#include "allocators/ruby/transient.h"

enum {
	WORD = 8,
	CONTENTS = 16,
	DATA = 32,
	EXTENSION = 24,	   /* of a class, up to 3.1 */
	FSTRING = 1 << 29, /* a flag: it is the one String of its text */
	STACK_WORDS = 500,
	HEAD_WORDS = 16, /* of struct heap_page, that are looked at */
};

/* Which words of a table's entries hold nothing, if they are objects. */
struct weakness {
	bool keys, values;
	bool lists; /* in blocks of memory that it has instead of objects */
};

static uint64_t flags_of(struct ruby_unused *search, uint64_t address)
{
	return ruby_slot_flags(&search->slots, &search->view, address);
}

/* An object that is a word of an entry, or of what an entry leads to. */
static struct error *add_word(struct ruby_unused *search, uint64_t place, uint64_t word,
			      bool with_lists)
{
	allocation_id id = with_lists ? ruby_find_block(search, word) : NO_ALLOCATION;

	if (id != NO_ALLOCATION)
		return unused_add_rest(search->unused, word, 0);
	return ruby_is_slot(search, word) ? unused_add(search->unused, place, place + WORD) : NULL;
}

static struct error *add_entries(struct ruby_unused *search, const struct ruby_table *table,
				 struct weakness weakness)
{
	struct ruby_table_entry entry;

	for (uint64_t i = table->first; i < table->end && budget_take(&search->steps); i++) {
		uint64_t at = table->entries + i * sizeof(entry);

		if (!view_read(&search->targets, at, &entry, sizeof(entry)))
			return NULL;
		if (weakness.keys)
			TRY(add_word(search, at + WORD, entry.key, weakness.lists));
		/* Finalizers are in an Array without a class. */
		if (weakness.values && flags_of(search, entry.value) % RUBY_TYPES != RUBY_ARRAY)
			TRY(add_word(search, at + 2 * WORD, entry.value, weakness.lists));
	}
	return NULL;
}

/* True if is() holds for all of the first entries, and there are some. */
static bool are_all(struct ruby_unused *search, const struct ruby_table *table,
		    bool (*is)(struct ruby_unused *search, const struct ruby_table_entry *entry))
{
	enum { LOOKED_AT = 64 };
	struct ruby_table_entry entry;
	size_t count = 0;

	for (uint64_t i = table->first; i < table->end && count < LOOKED_AT; i++) {
		if (!budget_take(&search->steps) ||
		    !view_read(&search->targets, table->entries + i * sizeof(entry), &entry,
			       sizeof(entry)))
			return false;
		if (entry.hash == UINT64_MAX)
			continue;
		if (!is(search, &entry))
			return false;
		count++;
	}
	return count > 0;
}

static bool is_the_string(struct ruby_unused *search, uint64_t address)
{
	uint64_t flags = flags_of(search, address);

	return flags % RUBY_TYPES == RUBY_STRING && (flags & FSTRING);
}

/* The table of all Strings that are each the one of its text. */
static bool is_string_entry(struct ruby_unused *search, const struct ruby_table_entry *entry)
{
	return entry->key == entry->value && is_the_string(search, entry->key);
}

/* The table of all symbols, by text. Those that stay have their texts in an Array. */
static bool is_symbol_entry(struct ruby_unused *search, const struct ruby_table_entry *entry)
{
	enum { STATIC_SYMBOL = 0xc, BITS = 0xff };

	return ((entry->value & BITS) == STATIC_SYMBOL ||
		flags_of(search, entry->value) % RUBY_TYPES == RUBY_SYMBOL) &&
	       is_the_string(search, entry->key);
}

/* Instance variables of what has no room for them: the object, and a block with their values. */
static bool is_variable_entry(struct ruby_unused *search, const struct ruby_table_entry *entry)
{
	return (flags_of(search, entry->key) & RUBY_HAS_APART) &&
	       ruby_find_block(search, entry->value) != NO_ALLOCATION;
}

/* Tables that are of no Hash. */
static struct error *add_table(struct ruby_unused *search, uint64_t address)
{
	static const struct weakness keys = { .keys = true };
	static const struct weakness all = { .keys = true, .values = true };
	struct ruby_table table;

	if (!ruby_read_table(search, address, &table))
		return NULL;
	if (are_all(search, &table, is_string_entry) || are_all(search, &table, is_symbol_entry))
		return add_entries(search, &table, all);
	return are_all(search, &table, is_variable_entry) ? add_entries(search, &table, keys)
							  : NULL;
}

static struct error *add_tables(struct ruby_unused *search)
{
	enum { ROUNDED = 16 };
	const struct allocation_index *index = search->slots.index;
	size_t hint = 0;

	bitmap_for_each(id, allocation_used(index)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);

		if (range.end - range.start - sizeof(struct ruby_table) <= ROUNDED &&
		    !bitmap_get(&search->own_tables, id) && !bitmap_get(&search->slots.slots, id))
			TRY(add_table(search, range.start));
	}
	return NULL;
}

static struct error *add_weak_tables(struct ruby_unused *search, uint64_t data,
				     struct weakness weakness)
{
	enum { MOST_TABLES = 2 };
	struct ruby_table table;
	uint64_t address;

	for (uint64_t i = 0; i < MOST_TABLES; i++)
		if (view_word(&search->targets, data + WORD * i, &address) &&
		    ruby_read_table(search, address, &table))
			TRY(add_entries(search, &table, weakness));
	return NULL;
}

/*
 * struct weakmap: up to 3.2, | objects to lists * | objects to objects * | a Proc |, later one
 * table of blocks with a key and a value each. struct weakkeymap has keys in blocks, and objects.
 * Later, both are in the object's slot.
 */
static struct error *add_weak_map(struct ruby_unused *search, uint64_t object)
{
	enum { EMBEDDED = 40 };
	char name[RUBY_MOST_NAME + 1];
	uint64_t type = ruby_find_data_type(search->ruby, &search->targets, object), data;
	struct weakness weakness = { .keys = true, .lists = true };

	if (!type || !ruby_read_data_name(search->slots.image, type, name) ||
	    (strcmp(name, "weakmap") != 0 && strcmp(name, "weakkeymap") != 0) ||
	    !view_word(&search->targets, object + DATA, &data))
		return NULL;
	weakness.values = strcmp(name, "weakmap") == 0;
	if (ruby_find_block(search, data) != NO_ALLOCATION)
		return add_weak_tables(search, data, weakness);
	return add_weak_tables(search, object + EMBEDDED, weakness);
}

/*
 * struct rb_subclass_entry, internal/class.h: | class | next | previous |, where the class above
 * lists it. The class has the address of its own entry, up to 3.1 in its extension.
 */
static struct error *add_subclass_entry(struct ruby_unused *search, uint64_t class)
{
	enum { WORDS = 32, SIZE = 3 * WORD, ROUNDED = 16 };
	uint64_t at = class, address, listed;

	if (!search->slots.has_length_behind && !view_word(&search->view, class + EXTENSION, &at))
		return NULL;
	for (uint64_t place = at; place < at + WORD * (uint64_t)WORDS; place += WORD) {
		allocation_id id = view_word(&search->view, place, &address)
					   ? ruby_find_block(search, address)
					   : NO_ALLOCATION;

		if (id != NO_ALLOCATION &&
		    allocation_size(search->slots.index, id) <= SIZE + ROUNDED &&
		    view_word(&search->targets, address, &listed) && listed == class)
			return unused_add(search->unused, address, address + WORD);
	}
	return NULL;
}

static struct error *add_weak_objects(struct ruby_unused *search)
{
	const struct allocation_index *index = search->slots.index;
	size_t hint = 0;

	bitmap_for_each(id, &search->slots.slots) {
		uint64_t start = allocation_range_near(index, (allocation_id)id, &hint).start;
		uint64_t flags;

		if (!view_word(&search->view, start, &flags))
			continue;
		if (flags % RUBY_TYPES == RUBY_DATA)
			TRY(add_weak_map(search, start));
		else if (flags % RUBY_TYPES == RUBY_CLASS || flags % RUBY_TYPES == RUBY_ICLASS)
			TRY(add_subclass_entry(search, start));
	}
	return NULL;
}

/* Chunks of the mark stack follow each other. */
static struct error *add_mark_stack(struct ruby_unused *search, uint64_t address)
{
	enum { SIZE = WORD * (STACK_WORDS + 1), ROUNDED = 96 };
	allocation_id id;

	while (budget_take(&search->steps)) {
		id = ruby_find_block(search, address);
		if (id == NO_ALLOCATION ||
		    allocation_size(search->slots.index, id) - SIZE > ROUNDED)
			return NULL;
		TRY(unused_add(search->unused, address, address + SIZE - WORD));
		if (!view_word(&search->targets, address + SIZE - WORD, &address))
			return NULL;
	}
	return NULL;
}

/* Add each word of the collector's data, except for those of the sorted pages. */
static struct error *add_word_of_space(struct ruby_unused *search, uint64_t place)
{
	static const struct weakness weakness = { .keys = true, .values = true };
	struct ruby_table table;
	uint64_t word;

	if (!view_word(&search->view, place, &word) || !word)
		return NULL;
	TRY(add_word(search, place, word, false));
	if (ruby_find_block(search, word) != NO_ALLOCATION && ruby_read_table(search, word, &table))
		return add_entries(search, &table, weakness);
	return add_mark_stack(search, word);
}

/* True if the block has addresses of pages, perhaps behind a count and a capacity. */
static bool has_pages(struct ruby_unused *search, const struct bitmap *pages, uint64_t address)
{
	enum { BEFORE = 2 };
	uint64_t word;

	for (uint64_t i = 0; i <= BEFORE; i += BEFORE) {
		allocation_id id = view_word(&search->targets, address + WORD * i, &word)
					   ? ruby_find_block(search, word)
					   : NO_ALLOCATION;

		if (id != NO_ALLOCATION && bitmap_get(pages, id))
			return true;
	}
	return false;
}

/*
 * Find the collector's word with the address of all pages, sorted: they are in a block of their
 * own.
 */
static bool find_sorted(struct ruby_unused *search, const struct bitmap *pages, allocation_id id,
			uint64_t *ret)
{
	const struct allocation_index *index = search->slots.index;
	uint64_t start = allocation_start(index, id), size = allocation_size(index, id), word;

	for (uint64_t i = 0; i + WORD <= size && budget_take(&search->steps); i += WORD) {
		allocation_id block = view_word(&search->view, start + i, &word)
					      ? ruby_find_block(search, word)
					      : NO_ALLOCATION;

		*ret = word;
		if (block != NO_ALLOCATION && !bitmap_get(pages, block) &&
		    has_pages(search, pages, word))
			return true;
	}
	return false;
}

static struct error *add_space(struct ruby_unused *search, allocation_id id, uint64_t sorted)
{
	const struct allocation_index *index = search->slots.index;
	uint64_t start = allocation_start(index, id), size = allocation_size(index, id), word;

	for (uint64_t i = 0; i + WORD <= size; i += WORD)
		if (view_word(&search->targets, start + i, &word) && word != sorted)
			TRY(add_word_of_space(search, start + i));
	return NULL;
}

/* Words of a page lead to slots, and to the collector's own block, in the middle of it. */
static struct error *look_at_page(struct ruby_unused *search, const struct bitmap *pages,
				  uint64_t page, struct bitmap *looked_at)
{
	enum { LEAST = 1024 };
	const struct allocation_index *index = search->slots.index;
	uint64_t word, sorted;

	for (uint64_t place = page; place < page + WORD * (uint64_t)HEAD_WORDS; place += WORD) {
		allocation_id id = view_word(&search->targets, place, &word) && word
					   ? allocation_find(index, word)
					   : NO_ALLOCATION;

		if (id == NO_ALLOCATION || !bitmap_get(allocation_used(index), id))
			continue;
		if (bitmap_get(&search->slots.slots, id))
			TRY(add_word(search, place, word, false));
		else if (allocation_start(index, id) != word && !bitmap_get(looked_at, id) &&
			 allocation_size(index, id) >= LEAST) {
			bitmap_set(looked_at, id);
			if (find_sorted(search, pages, id, &sorted))
				TRY(add_space(search, id, sorted));
		}
	}
	return NULL;
}

static struct error *look_at_pages(struct ruby_unused *search, struct bitmap *pages,
				   struct bitmap *looked_at)
{
	const struct allocation_index *index = search->slots.index;
	uint64_t page;

	for (size_t i = 0; i < heap_region_count(index); i++) {
		const struct heap_region *region = heap_region(index, i);
		allocation_id id = NO_ALLOCATION;

		if (region->start % RUBY_SMALL_PAGE == 0 && region->count > 0 &&
		    view_word(&search->view, region->start, &page))
			id = ruby_find_block(search, page);
		if (id != NO_ALLOCATION)
			bitmap_set(pages, id);
	}
	bitmap_for_each(id, pages)
		TRY(look_at_page(search, pages, allocation_start(index, (allocation_id)id),
				 looked_at));
	return NULL;
}

static struct error *add_collector(struct ruby_unused *search)
{
	const struct runtime_context *context = &search->ruby->space.context;
	_cleanup_(bitmap_deinit) struct bitmap pages = { 0 };
	_cleanup_(bitmap_deinit) struct bitmap looked_at = { 0 };

	TRY(bitmap_init(&pages, allocation_count(context->index), context->account));
	TRY(bitmap_init(&looked_at, allocation_count(context->index), context->account));
	return look_at_pages(search, &pages, &looked_at);
}

/* struct transient_heap: ... | objects * | int capacity, count | arena | ... */
static bool is_list_of_old(struct view *view, uint64_t place, uint64_t word, void *data)
{
	enum { LEAST = 1024, ROUNDED = 2 /* words */ };
	const struct ruby_unused *search = data;
	struct {
		uint32_t capacity, count;
		uint64_t arena;
	} rest;
	allocation_id id;

	if (!word || !view_read(view, place + WORD, &rest, sizeof(rest)) || rest.capacity < LEAST ||
	    (rest.capacity & (rest.capacity - 1)) || rest.count > rest.capacity || !rest.arena ||
	    rest.arena % RUBY_TRANSIENT_BLOCK != 0)
		return false;
	id = ruby_find_block(search, word);
	return id != NO_ALLOCATION &&
	       allocation_size(search->slots.index, id) / WORD - rest.capacity <= ROUNDED;
}

uint64_t ruby_find_list_of_old(struct ruby_unused *search)
{
	const struct runtime_context *context = &search->ruby->space.context;

	return module_data_search(context->image, context->program, is_list_of_old, search);
}

/* Old objects with pieces of the transient heap, which are moved before that is used again. */
static struct error *add_old(struct ruby_unused *search)
{
	uint64_t place = ruby_find_list_of_old(search), list;

	if (!place || !view_word(&search->targets, place, &list))
		return NULL;
	return unused_add_rest(search->unused, list, 0);
}

struct error *ruby_find_weak(struct ruby_unused *search)
{
	TRY(add_tables(search));
	TRY(add_old(search));
	TRY(add_weak_objects(search));
	return add_collector(search);
}
