#include "analyzer/runtimes/ruby/references.h"

#include "analyzer/runtimes/ruby/links.h"

enum {
	WORD = 8,
	CLASS = 8,
	CONTENTS = 16,
	DATA = 32, /* of T_DATA */
	CLASS_EXTENSION = 24,
};

static const struct allocation_index *index_of(const struct ruby_references *references)
{
	return references->ruby->space.index;
}

static bool is_slot(const struct ruby_references *references, allocation_id id)
{
	return bitmap_get(&references->ruby->slots.slots, id);
}

/* The word that leads to what the object alone has, of those that others lead to as well; or 0. */
static uint64_t own_word(uint64_t flags)
{
	enum { OF_ENV = 24 };

	switch (flags % RUBY_TYPES) {
	case RUBY_DATA:
		return DATA;
	case RUBY_FILE:
		return CONTENTS;
	case RUBY_IMEMO:
		return ruby_is_imemo(flags, RUBY_ENV)	 ? OF_ENV
		       : ruby_is_imemo(flags, RUBY_ISEQ) ? CONTENTS
							 : 0;
	default:
		return 0;
	}
}

static struct error *learn_data(struct ruby_references *references)
{
	const struct allocation_index *index = index_of(references);
	size_t hint = 0;

	bitmap_for_each(id, &references->ruby->slots.slots) {
		uint64_t start = allocation_range_near(index, (allocation_id)id, &hint).start;
		uint64_t flags, place, data;

		if (!view_word(&references->view, start, &flags))
			continue;
		references->has_call_caches |= ruby_is_imemo(flags, RUBY_CALLCACHE);
		place = own_word(flags);
		if (place && view_word(&references->view, start + place, &data) && data != 0 &&
		    address_map_find(&references->data, data) == NOT_IN_MAP)
			TRY(address_map_add(&references->data, data, (uint32_t)id));
	}
	return NULL;
}

/* Pages of slots are of no object, though each leads to some. */
static void add_pages(struct ruby_references *references)
{
	const struct allocation_index *index = index_of(references);
	uint64_t page;

	for (size_t i = 0; i < heap_region_count(index); i++) {
		const struct heap_region *region = heap_region(index, i);
		allocation_id id;

		if (region->count == 0 || !is_slot(references, region->first) ||
		    !view_word(&references->view, region->start, &page))
			continue;
		id = allocation_find(index, page);
		if (id != NO_ALLOCATION)
			bitmap_set(&references->shared, id);
	}
}

struct error *ruby_references_init(struct ruby_references *ret, struct ruby *ruby,
				   const struct bitmap *shared)
{
	enum { STEPS_FOR_EACH_WORD = 4 };
	struct memory_account *account = ruby->space.account;

	ret->ruby = ruby;
	ret->view.image = ruby->space.image;
	ret->steps.left = ruby->space.image->size / WORD * STEPS_FOR_EACH_WORD;
	arrays_use(account, &ret->data, &ret->seen, &ret->pending, &ret->found);
	TRY(array_resize(&ret->seen, allocation_count(ruby->space.index) + 1));
	TRY(bitmap_init(&ret->shared, allocation_count(ruby->space.index), account));
	bitmap_or(&ret->shared, shared);
	add_pages(ret);
	return learn_data(ret);
}

void ruby_references_deinit(struct ruby_references *references)
{
	bitmap_deinit(&references->shared);
	table_release(&references->data);
	arrays_release(&references->seen, &references->pending, &references->found);
}

static void begin(struct ruby_references *references, allocation_id object)
{
	references->search++;
	references->found.count = references->pending.count = 0;
	references->bytes = 0;
	references->in_block = references->is_packed = references->skips_weak = false;
	references->object = object;
	references->error = NULL;
}

/* False: it was seen by this search before. */
static bool see(struct ruby_references *references, allocation_id id)
{
	if (references->seen.items[id] == references->search)
		return false;
	references->seen.items[id] = references->search;
	return true;
}

static void add(struct ruby_references *references, allocation_id id)
{
	if (see(references, id) && !references->error)
		references->error = array_append(&references->found, id);
}

/* Take the address of an object for a reference to it, and follow that of a block. */
static void take_word(struct ruby_references *references, uint64_t word)
{
	const struct allocation_index *index = index_of(references);
	allocation_id id = word ? allocation_find(index, word) : NO_ALLOCATION;
	uint32_t owner;

	if (id == NO_ALLOCATION || references->error || !bitmap_get(allocation_used(index), id))
		return;
	if (is_slot(references, id)) {
		if (allocation_start(index, id) == word)
			add(references, id);
		return;
	}
	owner = references->in_block
			? address_map_find(&references->data, allocation_start(index, id))
			: NOT_IN_MAP;
	if (owner != NOT_IN_MAP && owner != references->object)
		add(references, owner);
	else if (!bitmap_get(&references->shared, id) && allocation_start(index, id) == word &&
		 see(references, id))
		references->error = array_append(&references->pending, id);
}

static void take_words(struct ruby_references *references, uint64_t start, uint64_t end)
{
	uint64_t word;

	for (; end - start >= WORD && budget_take(&references->steps); start += WORD)
		if (view_word(&references->view, start, &word))
			take_word(references, word);
}

/* Take the objects that the words refer to, without following blocks. */
static void take_objects(struct ruby_references *references, uint64_t start, uint64_t end)
{
	const struct allocation_index *index = index_of(references);
	allocation_id id;
	uint64_t word;

	for (; end - start >= WORD && budget_take(&references->steps); start += WORD) {
		id = view_word(&references->view, start, &word) ? allocation_find(index, word)
								: NO_ALLOCATION;
		if (id != NO_ALLOCATION && is_slot(references, id))
			take_word(references, word);
	}
}

/* The table of all strings that are each the one of its text: its strings are freed all the same.
 */
static bool is_weak(struct ruby_references *references, allocation_id id)
{
	enum { FIRST = 32, ENTRIES = 48, ENTRY = 24, KEY = 8, FSTRING = 1 << 29 };
	uint64_t table = allocation_start(index_of(references), id), first, entries, pair[2];

	return view_word(&references->view, table + FIRST, &first) && first < UINT32_MAX &&
	       view_word(&references->view, table + ENTRIES, &entries) &&
	       view_read(&references->view, entries + ENTRY * first + KEY, pair, sizeof(pair)) &&
	       pair[0] == pair[1] &&
	       (ruby_slot_flags(&references->ruby->slots, &references->view, pair[0]) & FSTRING);
}

/* Go through the blocks that are pending, and what these lead to. */
static void search(struct ruby_references *references)
{
	const struct allocation_index *index = index_of(references);

	references->in_block = true;
	while (references->pending.count > 0 && !references->error) {
		allocation_id id = references->pending.items[--references->pending.count];
		uint64_t start = allocation_start(index, id), size = allocation_size(index, id);

		if (references->skips_weak && is_weak(references, id))
			continue;
		references->bytes += size;
		if (references->is_packed && size > WORD / 2)
			take_objects(references, start + WORD / 2, start + size);
		take_words(references, start, start + size);
	}
}

static bool follow(void *data, const struct object_link *link)
{
	if (link->kind != LINK_CLASS && link->kind != LINK_SINGLETON)
		take_word(data, link->target);
	return false;
}

/* Count the block that a word leads to the start of. */
static allocation_id count_block(struct ruby_references *references, uint64_t word)
{
	const struct allocation_index *index = index_of(references);
	allocation_id id = word ? allocation_find(index, word) : NO_ALLOCATION;

	if (id == NO_ALLOCATION || is_slot(references, id) ||
	    !bitmap_get(allocation_used(index), id) || allocation_start(index, id) != word ||
	    !see(references, id))
		return NO_ALLOCATION;
	references->bytes += allocation_size(index, id);
	return id;
}

/* Count those that words of the allocation lead to; of a Hash, its table may be one. */
static void count_blocks(struct ruby_references *references, allocation_id holder, bool has_table)
{
	enum { TABLE = 56, MOST_WORDS = 640 / WORD };
	uint64_t start = allocation_start(index_of(references), holder), word;
	uint64_t words = allocation_size(index_of(references), holder) / WORD;

	for (uint64_t i = 2; i < words && i < MOST_WORDS; i++) {
		allocation_id id = view_word(&references->view, start + WORD * i, &word)
					   ? count_block(references, word)
					   : NO_ALLOCATION;

		if (has_table && id != NO_ALLOCATION &&
		    allocation_size(index_of(references), id) >= TABLE)
			count_blocks(references, id, false);
	}
}

/*
 * Take the elements of a type whose layout is known. Shared contents are marked through their root
 * only.
 */
static void take_elements(struct ruby_references *references, allocation_id object, uint64_t start,
			  uint64_t type)
{
	struct object_walk walk = object_walk_begin(&references->ruby->space, follow, references);
	uint64_t root = ruby_shared_with(&references->ruby->slots, &references->view, start);

	walk.steps = references->steps;
	walk.state = RUBY_WITH_HIDDEN;
	if (root)
		take_word(references, root);
	else if (type != RUBY_STRING)
		ruby_walk_links(&walk, object);
	references->steps = walk.steps;
	count_blocks(references, object, type == RUBY_HASH);
}

static void take_one(struct ruby_references *references, uint64_t place)
{
	take_objects(references, place, place + WORD);
}

/*
 * A value is an object, or a block: rb_const_entry_t has two objects behind its first word, so has
 * what caches a class variable, and struct rb_class_cc_entries, vm_callinfo.h, has a list:
 *
 *	| u32 capacity, u32 count | method | { call information, call cache } ... * |
 */
static void take_item(struct object_walk *walk, const struct ruby_id_item *item, void *data)
{
	enum { LAST = 2, PAIR = 16, MOST_PAIRS = 1 << 20 };
	struct ruby_references *references = data;
	uint64_t words[LAST + 1], count;

	if (count_block(references, item->value) == NO_ALLOCATION) {
		take_word(references, item->value);
		return;
	}
	if (!view_read(&references->view, item->value, words, sizeof(words)))
		return;
	count = words[0] >> 32;
	take_objects(references, item->value + WORD, item->value + sizeof(words));
	if (count <= (uint32_t)words[0] && count < MOST_PAIRS &&
	    count_block(references, words[LAST]) != NO_ALLOCATION)
		take_objects(references, words[LAST], words[LAST] + PAIR * count);
}

/* From 4.0 on, that of calls is an object. */
static void take_id_table(struct ruby_references *references, uint64_t place)
{
	struct object_walk walk = object_walk_begin(&references->ruby->space, NULL, NULL);
	struct ruby_id_table table;
	uint64_t address;

	take_one(references, place);
	if (!view_word(&references->view, place, &address) ||
	    count_block(references, address) == NO_ALLOCATION ||
	    !ruby_read_id_table(&references->view, address, &table))
		return;
	count_block(references, table.items);
	walk.steps = references->steps;
	ruby_walk_id_table(&walk, address, take_item, references);
	references->steps = walk.steps;
}

/*
 * struct RClass, internal/class.h: where a class has its tables; up to 3.1 in its extension. What
 * it knows of its subclasses and of all classes above is not marked.
 */
static const struct class_layout {
	uint64_t methods, variables, constants, callable, calls;
	uint64_t class_variables, attached, includer, name; /* 0: none, or not marked */
} old_class_layout = { 16, 8, 24, 32, 40, 48, 0, 0, 0 },
  class_layout = { 24, 32, 40, 48, 56, 64, 128, 136, 152 },
  boxed_class_layout = { 48, 40, 56, 64, 72, 80, 136, 136, 152 };

static void take_table(struct ruby_references *references, uint64_t place)
{
	enum { MOST_ENTRIES = 1 << 24 };
	struct ruby_table table;
	struct ruby_table_entry entry;
	uint64_t address;

	if (!view_word(&references->view, place, &address) ||
	    count_block(references, address) == NO_ALLOCATION ||
	    !view_read(&references->view, address, &table, sizeof(table)))
		return;
	count_block(references, table.bins);
	if (count_block(references, table.entries) == NO_ALLOCATION || table.end > MOST_ENTRIES)
		return;
	for (uint64_t i = table.first; i < table.end; i++) {
		uint64_t at = table.entries + i * sizeof(entry);

		if (!view_read(&references->view, at, &entry, sizeof(entry)))
			return;
		if (entry.hash != UINT64_MAX)
			take_objects(references, at + WORD, at + sizeof(entry));
	}
}

/* From 3.2 on they are in a row, up to the number that the shape tells. */
static void take_class_variables(struct ruby_references *references, uint64_t place, uint64_t flags)
{
	uint64_t count = ruby_variable_count(references->ruby, flags), values;

	if (count == RUBY_NO_COUNT)
		take_words(references, place, place + WORD);
	else if (view_word(&references->view, place, &values) &&
		 count_block(references, values) != NO_ALLOCATION)
		take_objects(references, values, values + WORD * count);
}

/* An object that stands for an included module has the module's methods, unless it has others. */
static void take_included(struct ruby_references *references, uint64_t start, uint64_t at,
			  const struct class_layout *layout)
{
	bool is_old = at != start;
	uint64_t methods, module, others;

	take_id_table(references, at + layout->callable);
	take_id_table(references, at + layout->calls);
	if (layout->includer)
		take_one(references, at + layout->includer);
	if (view_word(&references->view, at + layout->methods, &methods) &&
	    view_word(&references->view, start + CLASS, &module) &&
	    (!is_old || view_word(&references->view, module + CLASS_EXTENSION, &module)) &&
	    view_word(&references->view, module + layout->methods, &others) && others != methods)
		take_id_table(references, at + layout->methods);
}

static void take_class(struct ruby_references *references, uint64_t start, uint64_t flags)
{
	bool is_old = !references->ruby->slots.has_length_behind;
	bool has_boxes = references->ruby->slots.has_boxes;
	const struct class_layout *layout = is_old	? &old_class_layout
					    : has_boxes ? &boxed_class_layout
							: &class_layout;
	uint64_t at = start, super = ruby_super(&references->ruby->slots, &references->view, start);

	if (super)
		take_word(references, super);
	if (is_old && (!view_word(&references->view, start + CLASS_EXTENSION, &at) ||
		       count_block(references, at) == NO_ALLOCATION))
		return;
	if (flags % RUBY_TYPES == RUBY_ICLASS) {
		take_included(references, start, at, layout);
		return;
	}
	take_id_table(references, at + layout->methods);
	take_id_table(references, at + layout->constants);
	take_id_table(references, at + layout->calls);
	take_id_table(references, at + layout->class_variables);
	if (is_old) {
		take_table(references, at + layout->variables);
		return;
	}
	if (has_boxes)
		take_one(references, at + layout->variables);
	else
		take_class_variables(references, at + layout->variables, flags);
	take_one(references, at + layout->attached);
	take_one(references, at + layout->name);
}

/* rb_env_t, vm_core.h: | flags | iseq | ep | words | u32 count |; the one around it is not far. */
static void take_env(struct ruby_references *references, uint64_t start)
{
	enum { ISEQ = 1, EP, WORDS, COUNT, MOST_WORDS = 1 << 16, TAG_BITS = 3 };
	uint64_t words[COUNT + 1], around, env;

	if (!view_read(&references->view, start, words, sizeof(words)))
		return;
	take_word(references, words[ISEQ]);
	words[COUNT] = (uint32_t)words[COUNT];
	if (words[COUNT] < MOST_WORDS)
		take_objects(references, words[WORDS], words[WORDS] + WORD * words[COUNT]);
	count_block(references, words[WORDS]);
	if (view_word(&references->view, words[EP] - WORD, &around) &&
	    view_word(&references->view, (around & -(uint64_t)(TAG_BITS + 1)) + WORD, &env) &&
	    ruby_is_imemo(ruby_slot_flags(&references->ruby->slots, &references->view, env),
			  RUBY_ENV))
		take_word(references, env);
}

/* struct rb_io, internal/io.h, has references, and what it leads to has none. */
static void take_file(struct ruby_references *references, uint64_t start)
{
	uint64_t file;
	allocation_id id;

	if (!view_word(&references->view, start + CONTENTS, &file))
		return;
	id = count_block(references, file);
	if (id == NO_ALLOCATION)
		return;
	take_objects(references, file, file + allocation_size(index_of(references), id));
	count_blocks(references, id, false);
}

/* The shape tells how many values there are; without shapes, what is behind them is no address. */
static void take_variables(struct ruby_references *references, allocation_id object, uint64_t start,
			   uint64_t end, uint64_t flags)
{
	uint64_t count = ruby_variable_count(references->ruby, flags), values;

	if (!references->ruby->slots.has_length_behind) {
		take_elements(references, object, start, RUBY_OBJECT);
	} else if (count == RUBY_NO_COUNT) {
		take_words(references, start + CONTENTS, end);
	} else if (ruby_is_embedded(&references->ruby->slots, flags)) {
		take_objects(references, start + CONTENTS, start + CONTENTS + WORD * count);
	} else if (view_word(&references->view, start + CONTENTS, &values)) {
		count_block(references, values);
		take_objects(references, values, values + WORD * count);
	}
}

/*
 * struct rb_iseq_constant_body, vm_core.h: | u32 type, u32 words | code | ... | lines and names of
 * variables, without references | exceptions | iseq around | iseq of the method | ... |. Tables of
 * exceptions are packed: references in them stand at multiples of 4. Up to 3.1 the iseq of the
 * method is not marked, and up to 2.7 what calls found is not, either.
 */
static void take_iseq(struct ruby_references *references, uint64_t start, uint64_t end)
{
	enum {
		BODY = 16,
		CODE = 8,
		PARENT = 160,
		LATER_PARENT = 168, /* up to 3.1, and from 4.0 on */
		LINES = 48,
		MOST_CODE = 1 << 24
	};
	bool is_old = !references->ruby->slots.has_length_behind;
	bool has_boxes = references->ruby->slots.has_boxes;
	uint64_t body, parent = is_old || has_boxes ? LATER_PARENT : PARENT, words[2];
	uint64_t lines = parent - LINES - (has_boxes ? WORD : 0);
	allocation_id id;

	take_objects(references, start + CLASS, end);
	id = view_word(&references->view, start + BODY, &body) ? count_block(references, body)
							       : NO_ALLOCATION;
	if (id == NO_ALLOCATION)
		return;
	references->is_packed = true;
	end = body + allocation_size(index_of(references), id);
	if (end - body < parent + 2 * WORD ||
	    !view_read(&references->view, body, words, sizeof(words)))
		return;
	words[0] >>= 32;
	if (count_block(references, words[1]) != NO_ALLOCATION && words[0] < MOST_CODE)
		take_objects(references, words[1], words[1] + WORD * words[0]);
	take_words(references, body + CODE + WORD, body + lines);
	for (uint64_t place = lines; place < parent - WORD; place += WORD)
		if (view_word(&references->view, body + place, &words[0]))
			count_block(references, words[0]);
	take_words(references, body + parent - WORD, body + parent + WORD);
	body += parent + (is_old ? 2 : 1) * WORD;
	if (!references->has_call_caches && end - body > 2 * WORD) {
		take_words(references, body, body + WORD);
		body += 2 * WORD;
	}
	take_words(references, body, end);
}

/* rb_method_entry_t, method.h; of its definition, the body of two words. */
static void take_method(struct ruby_references *references, uint64_t start)
{
	enum { DEFINITION = 16, OWNER = 32, BODY = 8, BODY_END = 24 };
	uint64_t definition;

	take_one(references, start + CLASS);
	take_one(references, start + OWNER);
	if (!view_word(&references->view, start + DEFINITION, &definition))
		return;
	count_block(references, definition);
	take_words(references, definition + BODY, definition + BODY_END);
}

static void take_imemo(struct ruby_references *references, uint64_t flags, uint64_t start,
		       uint64_t end)
{
	switch (ruby_imemo_kind(&references->ruby->slots, flags)) {
	case RUBY_ENV:
		take_env(references, start);
		break;
	case RUBY_CREF:
	case RUBY_SVAR:
		take_objects(references, start + CLASS, end);
		break;
	case RUBY_CONSTCACHE:
		take_objects(references, start + CLASS, start + CLASS + WORD);
		break;
	case RUBY_CALLCACHE: /* up to 3.1, it holds its class */
		if (!references->ruby->slots.has_length_behind)
			take_objects(references, start + CONTENTS, end);
		break;
	case RUBY_CALLINFO:
		break;
	case RUBY_THROW_DATA:
		take_objects(references, start + CONTENTS, start + CONTENTS + WORD);
		break;
	case RUBY_METHOD:
		take_method(references, start);
		break;
	case RUBY_ISEQ:
		take_iseq(references, start, end);
		break;
	case RUBY_FIELDS:
		take_variables(references, NO_ALLOCATION, start, end, flags);
		break;
	default:
		take_words(references, start + CLASS, end);
	}
}

static void take_object(struct ruby_references *references, allocation_id object, uint64_t flags)
{
	enum { REGEXP_SOURCE = 24, SYMBOL_TEXT = 24 };
	uint64_t start = allocation_start(index_of(references), object);
	uint64_t end = start + allocation_size(index_of(references), object);

	switch (flags % RUBY_TYPES) {
	case RUBY_SYMBOL: /* its text, struct RSymbol */
		if (references->ruby->slots.has_boxes)
			take_one(references, start + SYMBOL_TEXT);
		count_blocks(references, object, false);
		break;
	case RUBY_FLOAT:
	case RUBY_BIGNUM:
		count_blocks(references, object, false);
		break;
	case RUBY_STRING:
	case RUBY_ARRAY:
	case RUBY_HASH:
	case RUBY_STRUCT:
		take_elements(references, object, start, flags % RUBY_TYPES);
		break;
	case RUBY_CLASS:
	case RUBY_MODULE:
	case RUBY_ICLASS:
		take_class(references, start, flags);
		break;
	case RUBY_REGEXP:
		take_objects(references, start + REGEXP_SOURCE, start + REGEXP_SOURCE + WORD);
		count_blocks(references, object, false);
		break;
	case RUBY_IMEMO:
		take_imemo(references, flags, start, end);
		break;
	case RUBY_MATCH:
		take_objects(references, start + CONTENTS, end);
		count_blocks(references, object, false);
		break;
	case RUBY_FILE:
		take_file(references, start);
		break;
	case RUBY_OBJECT:
		take_variables(references, object, start, end, flags);
		break;
	default:
		take_words(references, start + CONTENTS, end);
	}
}

/* Instance variables of what has no room for them: behind their number, in a block of their own. */
static void take_apart(struct ruby_references *references, uint64_t start)
{
	const struct allocation_index *index = index_of(references);
	allocation_id id = address_map_find(&references->ruby->apart, start);
	uint64_t block;
	uint32_t count;

	if (id == NOT_IN_MAP)
		return;
	if (is_slot(references, id)) {
		add(references, id);
		return;
	}
	block = allocation_start(index, id);
	count_block(references, block);
	if (view_read(&references->view, block, &count, sizeof(count)) &&
	    count < allocation_size(index, id) / WORD)
		take_objects(references, block + WORD, block + WORD * (count + UINT64_C(1)));
}

static bool has_no_class(uint64_t flags)
{
	return flags % RUBY_TYPES == RUBY_IMEMO || flags % RUBY_TYPES == RUBY_NODE;
}

struct error *ruby_references_find(struct ruby_references *references, allocation_id object)
{
	const struct allocation_index *index = index_of(references);
	uint64_t start = allocation_start(index, object), flags = 0, class;
	allocation_id class_id = NO_ALLOCATION;

	begin(references, object);
	view_word(&references->view, start, &flags);
	if (!has_no_class(flags) && view_word(&references->view, start + CLASS, &class))
		class_id = allocation_find(index, class);
	if (class_id != NO_ALLOCATION)
		see(references, class_id);
	take_object(references, object, flags);
	if ((flags & RUBY_HAS_APART) || references->ruby->slots.has_boxes)
		take_apart(references, start);
	search(references);
	return references->error;
}

struct error *ruby_references_find_from(struct ruby_references *references,
					const struct bitmap *from, bool follow_blocks)
{
	begin(references, NO_ALLOCATION);
	bitmap_for_each(id, from) {
		allocation_id target = (allocation_id)id;
		uint32_t owner = address_map_find(&references->data,
						  allocation_start(index_of(references), target));

		if (is_slot(references, target))
			add(references, target);
		else if (owner != NOT_IN_MAP)
			add(references, owner);
		if (!is_slot(references, target) && follow_blocks && see(references, target))
			TRY(array_append(&references->pending, target));
	}
	references->skips_weak = true;
	search(references);
	return references->error;
}
