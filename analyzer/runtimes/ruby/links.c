#include "analyzer/runtimes/ruby/links.h"

#include "analyzer/runtimes/ruby/objects.h"

enum {
	WORD = 8,
	/* Fields of all objects. */
	CLASS = 8,
	CONTENTS = 16,
	/* Bits of flags. */
	HAS_PROC = 1 << 14, /* of a Hash: what it has for missing keys is a Proc */
	HAS_TABLE = 1 << 15,
	BOUND_SHIFT = 20, /* of a Hash without a table */
	SHAPE_SHIFT = 32,

	MOST_CHAIN = 1 << 16,
};

static const uint64_t MOST_ITEMS = 1 << 28;
/* It stands for deleted keys up to 3.1, for no value later. */
static const uint64_t NO_KEY = 0x34;

void ruby_walk_emit(struct object_walk *walk, enum ruby_link_kind kind, uint64_t target,
		    uint64_t which, uint64_t number)
{
	bool is_object = target != 0 && target % WORD == 0;

	if (is_object || (walk->with_values && kind <= LINK_VALUE))
		object_walk_follow(walk, &(struct object_link){ kind, target, 0, which, number });
}

bool ruby_is_constant_class(const struct ruby *ruby, struct view *view, uint64_t object)
{
	unsigned int type = ruby_slot_flags(&ruby->slots, view, object) % RUBY_TYPES;
	char name[RUBY_MOST_NAME + 1];

	return (type == RUBY_CLASS || type == RUBY_MODULE) &&
	       ruby_read_name(&ruby->slots, view, object, name);
}

bool ruby_read_id_table(struct view *view, uint64_t address, struct ruby_id_table *ret)
{
	return address != 0 && address % WORD == 0 && view_read(view, address, ret, sizeof(*ret)) &&
	       ret->count <= ret->used && ret->used <= ret->capacity &&
	       (ret->capacity & (ret->capacity - 1)) == 0 && ret->items != 0 &&
	       ret->items % WORD == 0;
}

/* Call visit for each item of the table at address. */
void ruby_walk_id_table(struct object_walk *walk, uint64_t address,
			void (*visit)(struct object_walk *walk, const struct ruby_id_item *item,
				      void *data),
			void *data)
{
	struct ruby_id_table table;
	struct ruby_id_item item;

	if (!ruby_read_id_table(&walk->view, address, &table))
		return;
	for (uint64_t i = 0; i < table.capacity && object_walk_step(walk); i++) {
		if (!view_read(&walk->view, table.items + i * sizeof(item), &item, sizeof(item)))
			return;
		if (item.serial != 0)
			visit(walk, &item, data);
	}
}

typedef void table_visitor(struct object_walk *walk, uint64_t number, uint64_t key, uint64_t value,
			   const void *data);

static void walk_table(struct object_walk *walk, uint64_t address, table_visitor *visit,
		       const void *data)
{
	struct ruby_table table;
	struct ruby_table_entry entry;
	uint64_t number = 0;

	if (address % WORD != 0 || !view_read(&walk->view, address, &table, sizeof(table)) ||
	    table.end > MOST_ITEMS)
		return;
	for (uint64_t i = table.first; i < table.end && object_walk_step(walk); i++) {
		if (!view_read(&walk->view, table.entries + i * sizeof(entry), &entry,
			       sizeof(entry)))
			return;
		if (entry.hash != UINT64_MAX)
			visit(walk, number++, entry.key, entry.value, data);
	}
}

static void emit_pair(struct object_walk *walk, uint64_t number, uint64_t key, uint64_t value,
		      const void *data)
{
	if (walk->state & RUBY_IS_THREAD) {
		ruby_walk_emit(walk, LINK_THREAD_VARIABLE, value, key, number);
		return;
	}
	ruby_walk_emit(walk, LINK_VALUE, value, walk->state & RUBY_IS_BY_IDENTITY ? NO_KEY : key,
		       number);
	ruby_walk_emit(walk, LINK_KEY, key, 0, number);
}

/* One that compares by identity has another type than most have. */
static void walk_hash_table(struct object_walk *walk, uint64_t address)
{
	enum { TABLE_TYPE = 8 };
	uint64_t type;

	if (!view_word(&walk->view, address + TABLE_TYPE, &type) ||
	    type != ruby_of(walk->space)->table_type)
		walk->state |= RUBY_IS_BY_IDENTITY;
	walk_table(walk, address, emit_pair, NULL);
	walk->state &= ~(unsigned int)RUBY_IS_BY_IDENTITY;
}

/* Up to 8 pairs. */
static void walk_small_table(struct object_walk *walk, uint64_t address, uint64_t flags)
{
	enum { MOST_PAIRS = 8, UNDEFINED = 0x24 };
	uint64_t bound = flags >> BOUND_SHIFT & (2 * MOST_PAIRS - 1), number = 0, pair[2];

	for (uint64_t i = 0; i < bound && i < MOST_PAIRS && object_walk_step(walk); i++) {
		if (!view_read(&walk->view, address + i * sizeof(pair), pair, sizeof(pair)))
			return;
		if (pair[0] != UNDEFINED && pair[0] != NO_KEY)
			emit_pair(walk, number++, pair[0], pair[1], NULL);
	}
}

/*
 * struct RHash: up to 3.2, in slots of 40 bytes, | flags | class | table * | default |. Later the
 * table is behind the default; a small one has a byte for each pair first.
 */
static bool is_old_hash(uint64_t size)
{
	enum { OLD_SLOT = 40 };

	return size == OLD_SLOT;
}

/* Find a table of either kind; 0: it is empty. */
static uint64_t find_any_table(struct view *view, uint64_t object, uint64_t size)
{
	enum { TABLE = 24 };
	uint64_t table;

	if (!is_old_hash(size))
		return object + TABLE;
	return view_word(view, object + CONTENTS, &table) ? table : 0;
}

uint64_t ruby_find_hash_table(struct view *view, uint64_t object, uint64_t size)
{
	uint64_t flags;

	if (!view_word(view, object, &flags) || flags % RUBY_TYPES != RUBY_HASH ||
	    !(flags & HAS_TABLE))
		return 0;
	return find_any_table(view, object, size);
}

uint64_t ruby_hash_size(struct view *view, uint64_t object, uint64_t size)
{
	enum { COUNT = 16, SIZE_SHIFT = 16, SIZE_BITS = 0xf };
	uint64_t flags, table = ruby_find_hash_table(view, object, size), count;

	if (!view_word(view, object, &flags))
		return 0;
	if (table == 0)
		return flags >> SIZE_SHIFT & SIZE_BITS;
	return view_word(view, table + COUNT, &count) ? count : 0;
}

uint64_t ruby_hash_default(uint64_t object, uint64_t size)
{
	enum { OLD_DEFAULT = 24 };

	return object + (is_old_hash(size) ? OLD_DEFAULT : CONTENTS);
}

static void walk_hash(struct object_walk *walk, uint64_t object, uint64_t flags, uint64_t size)
{
	enum { HINTS = 8 };
	bool is_old = is_old_hash(size);
	uint64_t table = find_any_table(&walk->view, object, size), missing;

	if (table != 0 && (flags & HAS_TABLE))
		walk_hash_table(walk, table);
	else if (table != 0)
		walk_small_table(walk, table + (is_old ? 0 : HINTS), flags);
	if (view_word(&walk->view, ruby_hash_default(object, size), &missing))
		ruby_walk_emit(walk, flags & HAS_PROC ? LINK_DEFAULT_PROC : LINK_DEFAULT, missing,
			       0, 0);
}

/* An object that may be a Hash. */
static void walk_any_hash(struct object_walk *walk, uint64_t object)
{
	uint64_t flags = ruby_slot_flags(&ruby_of(walk->space)->slots, &walk->view, object);
	const struct allocation_index *index = ruby_of(walk->space)->space.index;

	if (flags % RUBY_TYPES == RUBY_HASH)
		walk_hash(walk, object, flags,
			  allocation_size(index, allocation_find(index, object)));
}

static void walk_array(struct object_walk *walk, uint64_t object)
{
	uint64_t elements, count, element;

	if (!ruby_read_array(&ruby_of(walk->space)->slots, &walk->view, object, &elements,
			     &count) ||
	    count > MOST_ITEMS)
		return;
	for (uint64_t i = 0; i < count && object_walk_step(walk); i++) {
		if (!view_word(&walk->view, elements + WORD * i, &element))
			return;
		ruby_walk_emit(walk, LINK_ITEM, element, 0, i);
	}
}

static void emit_variable(struct object_walk *walk, uint64_t serial, uint64_t target)
{
	if ((walk->state & RUBY_IS_THREAD) &&
	    !ruby_is_variable(&ruby_of(walk->space)->symbols, serial))
		walk_any_hash(walk, target);
	else if ((walk->state & RUBY_WITH_HIDDEN) ||
		 ruby_is_variable(&ruby_of(walk->space)->symbols, serial) ||
		 (serial != 0 && serial == walk->number))
		ruby_walk_emit(walk, LINK_VARIABLE, target, serial, 0);
}

static void emit_entry(struct object_walk *walk, uint64_t number, uint64_t key, uint64_t value,
		       const void *data)
{
	emit_variable(walk, ruby_serial(key), value);
}

/* struct rb_shape of 4.0. */
struct later_shape {
	uint64_t edges, name, ancestors;
	uint32_t parent;
	uint16_t next_index, capacity;
	uint8_t type, padding[7];
};

/* From 4.0 on, the number of a shape has bits above that say more of the object. */
bool ruby_read_shape(const struct ruby *ruby, struct view *view, uint64_t number,
		     struct ruby_shape *ret)
{
	enum { NUMBER_BITS = 0x7ffff, HAS_TABLE_INSTEAD = 1 << 24 };
	struct later_shape later;

	if (!ruby->slots.has_boxes)
		return number < ruby->shape_count &&
		       view_read(view, ruby->shapes + number * sizeof(*ret), ret, sizeof(*ret));
	if ((number & HAS_TABLE_INSTEAD) || (number & NUMBER_BITS) >= ruby->shape_count ||
	    !view_read(view, ruby->shapes + (number & NUMBER_BITS) * sizeof(later), &later,
		       sizeof(later)))
		return false;
	*ret = (struct ruby_shape){
		.edges = later.edges,
		.name = later.name,
		.next_index = later.next_index,
		.type = later.type,
		.parent = later.parent,
	};
	return true;
}

uint64_t ruby_variable_count(const struct ruby *ruby, uint64_t flags)
{
	struct view view = { ruby->space.image };
	struct ruby_shape shape;

	if (!ruby->slots.has_length_behind ||
	    !ruby_read_shape(ruby, &view, flags >> SHAPE_SHIFT, &shape) ||
	    shape.type > SHAPE_MOST_KNOWN)
		return RUBY_NO_COUNT;
	return shape.next_index;
}

/* Go up to the root. */
static void walk_shapes(struct object_walk *walk, uint64_t flags, uint64_t values)
{
	uint64_t number = flags >> SHAPE_SHIFT, value;
	const struct ruby *ruby = ruby_of(walk->space);
	struct ruby_shape shape;

	for (int i = 0; i < MOST_CHAIN && object_walk_step(walk); i++) {
		if (!ruby_read_shape(ruby, &walk->view, number, &shape) || shape.type == SHAPE_ROOT)
			return;
		if (shape.type == SHAPE_VARIABLE && shape.next_index > 0 &&
		    view_word(&walk->view, values + (uint64_t)WORD * (shape.next_index - 1),
			      &value))
			emit_variable(walk, ruby_serial(shape.name), value);
		number = shape.parent;
	}
}

/* The values of an object, whose places a table of its class tells up to 3.1. */
struct values {
	uint64_t first, count;
};

/* struct rb_iv_index_tbl_entry begins with the place; up to 3.0, the place itself is there. */
static void visit_place(struct object_walk *walk, uint64_t number, uint64_t key, uint64_t entry,
			const void *data)
{
	const struct values *values = data;
	uint32_t place = (uint32_t)entry;
	uint64_t value;

	if ((entry < MOST_CHAIN || view_read(&walk->view, entry, &place, sizeof(place))) &&
	    place < values->count &&
	    view_word(&walk->view, values->first + (uint64_t)WORD * place, &value))
		emit_variable(walk, ruby_serial(key), value);
}

uint64_t ruby_class_behind(struct object_walk *walk, uint64_t object)
{
	uint64_t class;

	return view_word(&walk->view, object + CLASS, &class)
		       ? ruby_real_class(&ruby_of(walk->space)->slots, &walk->view, class)
		       : 0;
}

static void walk_old_object(struct object_walk *walk, uint64_t object, uint64_t flags)
{
	enum { PLACES = 32, EXTENSION = 24, MOST_EMBEDDED = 3, EMBEDDED = 1 << 13 };
	struct values values = { object + CONTENTS, MOST_EMBEDDED };
	uint64_t places;

	if (flags & EMBEDDED) {
		uint64_t class = ruby_class_behind(walk, object);

		if (class == 0 || !view_word(&walk->view, class + EXTENSION, &places) ||
		    !view_word(&walk->view, places, &places))
			return;
	} else if (!view_word(&walk->view, object + CONTENTS, &values.count) ||
		   !view_word(&walk->view, object + CONTENTS + WORD, &values.first) ||
		   !view_word(&walk->view, object + PLACES, &places)) {
		return;
	}
	values.count = (uint32_t)values.count;
	walk_table(walk, places, visit_place, &values);
}

/* struct rb_fields, internal/imemo.h of 4.0: its values are as those of a T_OBJECT. */
static void walk_fields(struct object_walk *walk, uint64_t fields)
{
	uint64_t flags, values = fields + CONTENTS;

	if (view_word(&walk->view, fields, &flags) &&
	    (ruby_is_embedded(&ruby_of(walk->space)->slots, flags) ||
	     view_word(&walk->view, values, &values)))
		walk_shapes(walk, flags, values);
}

/* struct gen_ivtbl: | u32 count | values |; their places are those of a T_OBJECT. */
static void walk_apart(struct object_walk *walk, uint64_t object, uint64_t flags)
{
	enum { EXTENSION = 24 };
	const struct ruby *ruby = ruby_of(walk->space);
	allocation_id id = address_map_find(&ruby->apart, object);
	uint64_t class = ruby_class_behind(walk, object), places;
	struct values values;

	if (id == NOT_IN_MAP)
		return;
	values.first = allocation_start(ruby->space.index, id) + WORD;
	if (ruby->slots.has_boxes) {
		/* As references they are those of the object in between. */
		if (!(walk->state & RUBY_WITH_HIDDEN))
			walk_fields(walk, allocation_start(ruby->space.index, id));
		return;
	}
	values.count = allocation_size(ruby->space.index, id) / WORD - 1;
	if (ruby->slots.has_length_behind)
		walk_shapes(walk, flags, values.first);
	else if (class != 0 && view_word(&walk->view, class + EXTENSION, &places) &&
		 view_word(&walk->view, places, &places))
		walk_table(walk, places, visit_place, &values);
}

static void walk_plain_object(struct object_walk *walk, uint64_t object, uint64_t flags)
{
	uint64_t values = object + CONTENTS;

	if (!ruby_of(walk->space)->slots.has_length_behind)
		walk_old_object(walk, object, flags);
	else if (ruby_is_embedded(&ruby_of(walk->space)->slots, flags) ||
		 view_word(&walk->view, values, &values))
		walk_shapes(walk, flags, values);
}

/* rb_const_entry_t, constant.h. */
static void visit_constant(struct object_walk *walk, const struct ruby_id_item *item, void *data)
{
	enum { PRIVATE = 1, MOST_FLAGS = 0x1ff };
	struct {
		uint32_t flags, line;
		uint64_t value, file;
	} constant;

	if (view_read(&walk->view, item->value, &constant, sizeof(constant)) &&
	    constant.flags <= MOST_FLAGS &&
	    ruby_is_constant(&ruby_of(walk->space)->symbols, item->serial))
		ruby_walk_emit(walk, constant.flags & PRIVATE ? LINK_PRIVATE : LINK_CONSTANT,
			       constant.value, item->serial, 0);
}

void ruby_walk_class(struct object_walk *walk, uint64_t class, uint64_t flags)
{
	enum {
		EXTENSION = 24,
		VARIABLES = 32,
		CONSTANTS = 40,
		LATER_CONSTANTS = 56,
		OLD_VARIABLES = 8,
		OLD_CONSTANTS = 24
	};
	bool is_old = !ruby_of(walk->space)->slots.has_length_behind;
	uint64_t variables = class + VARIABLES, constants = class + CONSTANTS;

	if (is_old) {
		uint64_t extension;

		if (!view_word(&walk->view, class + EXTENSION, &extension))
			return;
		variables = extension + OLD_VARIABLES;
		constants = extension + OLD_CONSTANTS;
	}
	if (ruby_of(walk->space)->slots.has_boxes)
		constants = class + LATER_CONSTANTS;
	if (view_word(&walk->view, constants, &constants))
		ruby_walk_id_table(walk, constants, visit_constant, NULL);
	if (ruby_of(walk->space)->slots.has_boxes) {
		walk_apart(walk, class, flags);
		return;
	}
	if (!view_word(&walk->view, variables, &variables) || variables == 0)
		return;
	if (is_old)
		walk_table(walk, variables, emit_entry, NULL);
	else
		walk_shapes(walk, flags, variables);
}

/* struct RStruct: the number of embedded members is in the flags. */
static void walk_struct(struct object_walk *walk, uint64_t object, uint64_t flags)
{
	enum { COUNT_SHIFT = 13, COUNT_BITS = 0x7f, OLD_COUNT_BITS = 3 };
	uint64_t first = object + CONTENTS, member;
	uint64_t count =
		flags >> COUNT_SHIFT &
		(ruby_of(walk->space)->slots.has_length_behind ? COUNT_BITS : OLD_COUNT_BITS);

	if (count == 0 && (!view_word(&walk->view, object + CONTENTS, &count) ||
			   !view_word(&walk->view, object + CONTENTS + WORD, &first)))
		return;
	for (uint64_t i = 0; i < count && i < MOST_CHAIN && object_walk_step(walk); i++) {
		if (!view_word(&walk->view, first + WORD * i, &member))
			return;
		ruby_walk_emit(walk, LINK_MEMBER, member, 0, i);
	}
}

/* A class without a name may be reached only by its objects. */
static void walk_nameless_class(struct object_walk *walk, allocation_id id)
{
	struct object_space *space = &ruby_of(walk->space)->space;
	uint64_t class = object_class_of(space, id);
	enum class_name_kind kind = CLASS_NAMED;

	if (ruby_class_name(space, class, &kind) && kind == CLASS_NUMBERED)
		ruby_walk_emit(walk, LINK_CLASS, class, 0, 0);
}

void ruby_walk_links(struct object_walk *walk, allocation_id id)
{
	const struct allocation_index *index = ruby_of(walk->space)->space.index;
	uint64_t object = allocation_start(index, id), flags, type;

	if (!view_word(&walk->view, object, &flags) || !object_walk_step(walk))
		return;
	type = flags % RUBY_TYPES;
	if (type == RUBY_OBJECT)
		walk_plain_object(walk, object, flags);
	else if (type == RUBY_CLASS || type == RUBY_MODULE) {
		ruby_walk_class(walk, object, flags);
		ruby_walk_methods(walk, object);
	} else if (type == RUBY_ARRAY)
		walk_array(walk, object);
	else if (type == RUBY_HASH)
		walk_hash(walk, object, flags, allocation_size(index, id));
	else if (type == RUBY_STRUCT)
		walk_struct(walk, object, flags);
	else if (type == RUBY_DATA)
		ruby_walk_data(walk, object);
	if ((flags & RUBY_HAS_APART) ||
	    (ruby_of(walk->space)->slots.has_boxes && type != RUBY_CLASS && type != RUBY_MODULE))
		walk_apart(walk, object, flags);
	walk->state &= ~(unsigned int)RUBY_IS_THREAD;
	walk_nameless_class(walk, id);
	ruby_walk_singleton(walk, object);
}
