/*
 * Finds objects of Ruby with names of their own: Object, and targets of global variables. The
 * places of names in a process are learned on the way.
 */
#include "analyzer/runtimes/module_data.h"
#include "analyzer/runtimes/ruby/links.h"

enum { WORD = 8 };

/*
 * The table of global variables, variable.c: its items lead to { variable *, ID }. Those of C code
 * have another address behind their first word than that of an object.
 */
static bool read_global(struct view *view, const struct ruby_id_item *item, uint64_t *ret_variable)
{
	uint64_t words[2];

	if (item->value == 0 || item->value % WORD != 0 ||
	    !view_read(view, item->value, words, sizeof(words)) || words[1] >> 4 != item->serial ||
	    words[0] % WORD != 0)
		return false;
	*ret_variable = words[0];
	return true;
}

/* Each of its items must say its own number. */
static bool is_global_table(struct view *view, uint64_t address)
{
	enum { ENOUGH = 16, MOST_LOOKED_AT = 1 << 10 };
	struct ruby_id_table table;
	struct ruby_id_item item;
	uint64_t variable;
	size_t right = 0;

	if (!ruby_read_id_table(view, address, &table) || table.count < ENOUGH)
		return false;
	for (uint64_t i = 0; i < table.capacity && i < MOST_LOOKED_AT && right < ENOUGH; i++) {
		if (!view_read(view, table.items + i * sizeof(item), &item, sizeof(item)))
			return false;
		if (item.serial == 0)
			continue;
		if (!read_global(view, &item, &variable))
			return false;
		right++;
	}
	return right >= ENOUGH;
}

static void visit_global(struct object_walk *walk, const struct ruby_id_item *item, void *data)
{
	struct object_naming *naming = data;
	char text[RUBY_MOST_NAME + 1];
	uint64_t variable, value;

	if (read_global(&walk->view, item, &variable) &&
	    view_word(&walk->view, variable + WORD, &value) &&
	    ruby_symbol_text(&ruby_of(walk->space)->symbols, &walk->view, item->serial, text) &&
	    text[0] == '$')
		object_name(naming, value, "%s", text);
}

/*
 * True if the first key is a String: tables that compare by identity, and those of `case`, have
 * other keys.
 */
static bool has_string_key(const struct ruby *ruby, struct view *view, uint64_t table)
{
	enum { FIRST = 32, ENTRIES = 48, ENTRY = 24, KEY = 8 };
	uint64_t first, entries, key;

	return view_word(view, table + FIRST, &first) && first <= UINT32_MAX &&
	       view_word(view, table + ENTRIES, &entries) &&
	       view_word(view, entries + first * ENTRY + KEY, &key) &&
	       ruby_slot_flags(&ruby->slots, view, key) % RUBY_TYPES == RUBY_STRING;
}

/* The type of most tables, by the vote of those that programs can see with Strings for keys. */
static void learn_table_type(struct ruby *ruby, struct view *view)
{
	enum { CLASS = 8, TABLE_TYPE = 8 };
	size_t hint = 0, votes = 0;

	ruby->table_type = 0;
	bitmap_for_each(id, &ruby->slots.slots) {
		struct memory_range range =
			allocation_range_near(ruby->space.index, (allocation_id)id, &hint);
		uint64_t table = ruby_find_hash_table(view, range.start, range.end - range.start);
		uint64_t type, class;

		if (table == 0 || !view_word(view, range.start + CLASS, &class) || class == 0 ||
		    !has_string_key(ruby, view, table) ||
		    !view_word(view, table + TABLE_TYPE, &type))
			continue;
		if (votes == 0)
			ruby->table_type = type;
		votes = type == ruby->table_type ? votes + 1 : votes - 1;
	}
}

/* rb_shape_tree_t: | root | all | u32 count | ...; the root is the first of all. */
static void learn_shapes(struct ruby *ruby, struct view *view, uint64_t address)
{
	enum { MOST_SHAPES = 1 << 20 };
	struct ruby_shape root;
	uint64_t words[3];

	if (ruby->shapes || !view_read(view, address, words, sizeof(words)) || words[0] == 0 ||
	    words[0] != words[1] || words[0] % WORD != 0 || (uint32_t)words[2] > MOST_SHAPES ||
	    !view_read(view, words[0], &root, sizeof(root)) || root.name != 0 ||
	    root.parent != UINT32_MAX || root.type != SHAPE_ROOT || root.next_index != 0)
		return;
	ruby->shapes = words[0];
	ruby->shape_count = (uint32_t)words[2];
	ruby->shape_count_place = address + 2 * WORD;
}

/* rb_shape_tree of 4.0, a variable: | all | root | capacities | u32 count |. */
static bool is_shape_tree(struct view *view, uint64_t place, uint64_t word, void *data)
{
	enum { MOST_SHAPES = 1 << 19 };
	struct ruby *ruby = data;
	struct ruby_shape root;
	uint64_t words[3];

	if (word == 0 || word % WORD != 0 || !view_read(view, place + WORD, words, sizeof(words)) ||
	    words[0] != word || (uint32_t)words[2] == 0 || (uint32_t)words[2] > MOST_SHAPES)
		return false;
	ruby->shapes = word;
	ruby->shape_count = (uint32_t)words[2];
	ruby->shape_count_place = place + 3 * WORD;
	return ruby_read_shape(ruby, view, 0, &root) && root.name == 0 &&
	       root.parent == UINT32_MAX && root.type == SHAPE_ROOT && root.next_index == 0;
}

/*
 * True if the object with variables is still used by the owner that it states. Classes and data
 * refer to it; of others, both have the same shape.
 */
static bool is_in_use(const struct ruby *ruby, struct view *view, uint64_t fields, uint64_t flags,
		      uint64_t owner)
{
	enum { OF_CLASS = 40, OF_DATA = 16, SHAPE_SHIFT = 32, NUMBER_BITS = 0x7ffff };
	uint64_t owner_flags = ruby_slot_flags(&ruby->slots, view, owner), word;

	switch (owner_flags % RUBY_TYPES) {
	case 0:
		return false;
	case RUBY_CLASS:
	case RUBY_MODULE:
	case RUBY_ICLASS:
		return view_word(view, owner + OF_CLASS, &word) && word == fields;
	case RUBY_DATA:
		return view_word(view, owner + OF_DATA, &word) && word == fields;
	default:
		return ((flags ^ owner_flags) >> SHAPE_SHIFT & NUMBER_BITS) == 0;
	}
}

/* Each object of variables has the one that they are of for its class. */
static struct error *learn_fields(struct ruby *ruby, struct view *view)
{
	enum { CLASS = 8 };
	size_t hint = 0;

	bitmap_for_each(id, &ruby->slots.slots) {
		uint64_t start =
			allocation_range_near(ruby->space.index, (allocation_id)id, &hint).start;
		uint64_t flags, owner;

		if (view_word(view, start, &flags) && flags % RUBY_TYPES == RUBY_IMEMO &&
		    ruby_imemo_kind(&ruby->slots, flags) == RUBY_FIELDS &&
		    view_word(view, start + CLASS, &owner) &&
		    is_in_use(ruby, view, start, flags, owner) &&
		    address_map_find(&ruby->apart, owner) == NOT_IN_MAP)
			TRY(address_map_add(&ruby->apart, owner, (uint32_t)id));
	}
	return NULL;
}

static struct error *learn_boxed(struct ruby *ruby, struct view *view)
{
	if (!module_data_search(ruby->space.image, ruby->space.program, is_shape_tree, ruby))
		ruby->shapes = ruby->shape_count = 0;
	return learn_fields(ruby, view);
}

/* struct st_table; an entry of it has the hash of a deleted one if it is none. */
struct entry {
	uint64_t hash, key, value;
};

static bool read_entries(struct view *view, uint64_t address, uint64_t *ret_entries,
			 uint64_t *ret_end)
{
	enum { COUNT = 2, FIRST = 4, END, ENTRIES, WORDS };
	uint64_t words[WORDS];

	if (!view_read(view, address, words, sizeof(words)) || words[COUNT] == 0 ||
	    words[COUNT] > words[END] || words[FIRST] > words[END] || words[END] > UINT32_MAX)
		return false;
	*ret_entries = words[ENTRIES];
	*ret_end = words[END];
	return true;
}

/* An object with variables apart, and the block that these are in. */
static allocation_id find_apart(const struct ruby *ruby, struct view *view,
				const struct entry *entry)
{
	allocation_id id = allocation_find(ruby->space.index, entry->value);

	if (!(ruby_slot_flags(&ruby->slots, view, entry->key) & RUBY_HAS_APART) ||
	    id == NO_ALLOCATION || bitmap_get(&ruby->slots.slots, id) ||
	    allocation_start(ruby->space.index, id) != entry->value)
		return NO_ALLOCATION;
	return id;
}

/* True if the first entries all fit. */
static bool has_apart(const struct ruby *ruby, struct view *view, uint64_t entries, uint64_t end)
{
	enum { ENOUGH = 16, MOST_LOOKED_AT = 1 << 10 };
	struct entry entry;
	size_t right = 0;

	for (uint64_t i = 0; i < end && i < MOST_LOOKED_AT && right < ENOUGH; i++) {
		if (!view_read(view, entries + i * sizeof(entry), &entry, sizeof(entry)))
			return false;
		if (entry.hash == UINT64_MAX)
			continue;
		if (find_apart(ruby, view, &entry) == NO_ALLOCATION)
			return false;
		right++;
	}
	return right > 0;
}

/* The table of instance variables of what has no room for them, such as strings, variable.c. */
static struct error *learn_apart(struct ruby *ruby, struct view *view, uint64_t address)
{
	uint64_t entries, end;
	struct entry entry;

	if (ruby->apart.count > 0 || !read_entries(view, address, &entries, &end) ||
	    !has_apart(ruby, view, entries, end))
		return NULL;
	for (uint64_t i = 0; i < end; i++) {
		allocation_id id;

		if (!view_read(view, entries + i * sizeof(entry), &entry, sizeof(entry)))
			break;
		id = entry.hash == UINT64_MAX ? NO_ALLOCATION : find_apart(ruby, view, &entry);
		if (id != NO_ALLOCATION && address_map_find(&ruby->apart, entry.key) == NOT_IN_MAP)
			TRY(address_map_add(&ruby->apart, entry.key, id));
	}
	return NULL;
}

/* Objects with finalizers have this flag. */
static const uint64_t HAS_FINALIZERS = 1 << 7;

/* The table of finalizers, gc.c: for each object, an array that programs cannot see, with Procs. */
static void gather_finalizers(struct object_naming *naming, struct view *view, uint64_t address)
{
	enum { CLASS = 8, MOST_PROCS = 64 };
	struct ruby *ruby = ruby_of(naming->space);
	uint64_t entries, end, procs, count, proc, class;
	struct entry entry;

	if (!read_entries(view, address, &entries, &end))
		return;
	for (uint64_t i = 0; i < end; i++) {
		if (!view_read(view, entries + i * sizeof(entry), &entry, sizeof(entry)))
			return;
		if (entry.hash == UINT64_MAX)
			continue;
		if (!(ruby_slot_flags(&ruby->slots, view, entry.key) & HAS_FINALIZERS) ||
		    !ruby_read_array(&ruby->slots, view, entry.value, &procs, &count) ||
		    !view_word(view, entry.value + CLASS, &class) || class != 0)
			return;
		for (uint64_t j = 0; j < count && j < MOST_PROCS; j++)
			if (view_word(view, procs + WORD * j, &proc) &&
			    ruby_is_data(ruby, view, proc, "proc"))
				object_name(naming, proc, "<finalizer>");
	}
}

/* eval_jump.c: each block of at_exit() has | code | Proc | next |, in a list that a variable has.
 */
static bool gather_endings(struct view *view, uint64_t place, uint64_t word, void *data)
{
	enum { CODE, PROC, NEXT, WORDS, MOST_ENDINGS = 1 << 16 };
	struct object_naming *naming = data;
	uint64_t words[WORDS], code = 0;
	int i = 0;

	for (; word && word % WORD == 0 && i < MOST_ENDINGS && !naming->error; i++) {
		if (!view_read(view, word, words, sizeof(words)) || (i && words[CODE] != code) ||
		    !ruby_is_data(ruby_of(naming->space), view, words[PROC], "proc"))
			return false;
		code = words[CODE];
		word = words[NEXT];
		object_name(naming, words[PROC], "<at_exit>");
	}
	return i > 0;
}

/* The VM's data has the Procs of trap(). */
static void gather_traps(struct object_naming *naming, struct view *view)
{
	enum { DATA = 32, MOST_WORDS = 1 << 10 };
	struct ruby *ruby = ruby_of(naming->space);
	const struct allocation_index *index = ruby->space.index;
	uint64_t data, word;
	size_t hint = 0;

	bitmap_for_each(id, &ruby->slots.slots) {
		uint64_t start = allocation_range_near(index, (allocation_id)id, &hint).start;

		if (!ruby_is_data(ruby, view, start, "VM") || !view_word(view, start + DATA, &data))
			continue;
		for (uint64_t i = 0; i < MOST_WORDS && view_word(view, data + WORD * i, &word); i++)
			if (ruby_is_data(ruby, view, word, "proc"))
				object_name(naming, word, "<trap>");
		return;
	}
}

static struct error *gather_globals(struct object_naming *naming)
{
	struct ruby *ruby = ruby_of(naming->space);
	const struct allocation_index *index = ruby->space.index;
	struct object_walk walk = object_walk_begin(&ruby->space, NULL, NULL);
	bool is_found = false;
	size_t hint = 0;

	bitmap_for_each(id, allocation_used(index)) {
		uint64_t start = allocation_range_near(index, (allocation_id)id, &hint).start;

		if (bitmap_get(&ruby->slots.slots, id))
			continue;
		if (!ruby->slots.has_boxes) {
			learn_shapes(ruby, &walk.view, start);
			TRY(learn_apart(ruby, &walk.view, start));
		}
		gather_finalizers(naming, &walk.view, start);
		if (is_found || !is_global_table(&walk.view, start))
			continue;
		is_found = true;
		ruby_walk_id_table(&walk, start, visit_global, naming);
		TRY(naming->error);
	}
	return NULL;
}

static void name_local(void *data, const struct runtime_local *local)
{
	struct object_naming *naming = data;

	if (!ruby_is_constant_class(ruby_of(naming->space), &naming->view, local->address))
		object_name_local(naming, local);
}

static void gather_object(struct object_naming *naming)
{
	struct ruby *ruby = ruby_of(naming->space);
	struct view view = { ruby->space.image };
	char name[RUBY_MOST_NAME + 1];

	for (size_t i = 0; i < ruby->space.classes.list.count; i++) {
		uint64_t class = ruby->space.classes.list.items[i].number;

		if (ruby_slot_flags(&ruby->slots, &view, class) % RUBY_TYPES == RUBY_CLASS &&
		    ruby_read_name(&ruby->slots, &view, class, name) && strcmp(name, "Object") == 0)
			object_name(naming, class, "%s", name);
	}
}

struct error *ruby_find_globals(struct object_naming *naming)
{
	struct ruby *ruby = ruby_of(naming->space);
	struct view view = { ruby->space.image };

	ruby->apart.memory.account = ruby->space.account;
	ruby_symbols_deinit(&ruby->symbols);
	TRY(ruby_symbols_init(&ruby->symbols, &ruby->slots, ruby->space.account));
	learn_table_type(ruby, &view);
	if (ruby->slots.has_boxes)
		TRY(learn_boxed(ruby, &view));
	gather_object(naming);
	TRY(gather_globals(naming));
	gather_traps(naming, &view);
	module_data_search(ruby->space.image, ruby->space.program, gather_endings, naming);
	return NULL;
}

/* Name the variables of running functions; objects that outlive these have better names. */
struct error *ruby_find_locals(struct object_naming *naming)
{
	struct object_space *space = naming->space;
	const struct frame_visitor visitor = { naming, object_name_frame, name_local };

	TRY(ruby_calls_learn(ruby_of(space)));
	for (uint32_t i = 0; i < space->program->thread_count; i++)
		TRY(ruby_visit_frames(space, i, &visitor));
	return ruby_visit_all_fibers(space, &visitor);
}
