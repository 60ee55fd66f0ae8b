/*
 * Links: references from an object of MRI, or from a block that it has for itself, such as the
 * table of a Hash, that the language has words for. The layouts are those of 3.1, 3.3 and 4.0:
 * variable.c, shape.h, id_table.c, constant.h, internal/class.h, internal/hash.h, st.h.
 *
 *	T_OBJECT | flags | class | values ...                  embedded
 *	3.1      | flags | class | u32 count | values | places |
 *	3.3      | u32 flags, u32 shape | class | values |
 *
 *	T_CLASS 3.1 | flags | class | super | extension |
 *	  extension | places | variables | methods | constants | ...
 *	T_CLASS 3.3 | u32 flags, u32 shape | class | super | methods | variables | constants | ...
 *
 *	T_CLASS 4.0 | u32 flags, u32 shape | class | object_id | box | super | fields | ...
 *	  fields (T_IMEMO) | u32 flags, u32 shape | owner | values ... |
 *
 * 3.1 has a table of the variables' places for each class. In 3.3, all shapes stand in a row: each
 * adds the name of one variable to the shape that it comes from.
 */
#pragma once

#include "analyzer/runtimes/object_links.h"
#include "analyzer/runtimes/ruby/space.h"

enum ruby_link_kind {
	LINK_CONSTANT,
	LINK_PRIVATE,  /* constant */
	LINK_VARIABLE, /* of an object or class */
	LINK_MEMBER,   /* of a Struct */
	LINK_ITEM,     /* by number */
	LINK_VALUE,    /* of a key */
	LINK_KEY,
	LINK_DEFAULT,
	LINK_DEFAULT_PROC,
	LINK_CLASS,
	LINK_SINGLETON,
	LINK_PROC_LOCAL, /* variable that it captured */
	LINK_PROC_SELF,
	LINK_LOCAL, /* the same of a Binding */
	LINK_RECEIVER,
	LINK_METHOD, /* the Proc that define_method() got */
	LINK_THREAD_LOCAL,
	LINK_THREAD_VARIABLE,
	LINK_THREAD_VALUE,
	LINK_ITEMS,  /* of a queue */
	LINK_INSIDE, /* only C code gets there */
};

/* A link's which is the serial number of a name, the key, or the symbol. */
extern const struct object_step ruby_steps[]; /* by kind */

/* The state of a walk. Its number is that of a name: of a variable, besides those programs see. */
enum {
	RUBY_WITH_HIDDEN = 1,	 /* all variables */
	RUBY_IS_BY_IDENTITY = 2, /* the table at hand compares keys so */
	RUBY_IS_THREAD = 4,	 /* a variable that programs do not see has those of the Thread */
};

static inline struct ruby *ruby_of(struct object_space *space)
{
	return (struct ruby *)space;
}

/* struct st_table, include/ruby/st.h; entries of all ones for a hash are deleted. */
struct ruby_table {
	uint64_t powers, type, count, bins, first, end, entries;
};

struct ruby_table_entry {
	uint64_t hash, key, value;
};

void ruby_walk_class(struct object_walk *walk, uint64_t class, uint64_t flags);

/* Walk the data of C code, the singleton class, and a class's methods: closures.c. */
void ruby_walk_data(struct object_walk *walk, uint64_t object);
void ruby_walk_singleton(struct object_walk *walk, uint64_t object);
void ruby_walk_methods(struct object_walk *walk, uint64_t class);

/* True if the object is a T_DATA of that name. */
bool ruby_is_data(const struct ruby *ruby, struct view *view, uint64_t object, const char *name);

/* Follow a link to an object, or with values to a value. */
void ruby_walk_emit(struct object_walk *walk, enum ruby_link_kind kind, uint64_t target,
		    uint64_t which, uint64_t number);

/*
 * True if it is a class or module with a name. Paths reach these by constants only, because
 * Shop::LIST says more than options[:app]::LIST.
 */
bool ruby_is_constant_class(const struct ruby *ruby, struct view *view, uint64_t object);

/* Its class, behind singletons and modules; 0: none. */
uint64_t ruby_class_behind(struct object_walk *walk, uint64_t object);

/* struct rb_id_table, id_table.c: a hash table whose keys are serial numbers; 0 is none. */
struct ruby_id_table {
	uint32_t capacity, count, used, padding;
	uint64_t items;
};

struct ruby_id_item {
	uint32_t serial, collision;
	uint64_t value;
};

bool ruby_read_id_table(struct view *view, uint64_t address, struct ruby_id_table *ret);

/* Call visit for each item of the table at address. */
void ruby_walk_id_table(struct object_walk *walk, uint64_t address,
			void (*visit)(struct object_walk *walk, const struct ruby_id_item *item,
				      void *data),
			void *data);

/* The struct st_table of a Hash, in a slot of that size; 0: it is none, or has few pairs. */
uint64_t ruby_find_hash_table(struct view *view, uint64_t object, uint64_t size);

/* How many instance variables an object of those flags has, RUBY_NO_COUNT: that is not known. */
#define RUBY_NO_COUNT UINT64_MAX
uint64_t ruby_variable_count(const struct ruby *ruby, uint64_t flags);

/* How many pairs a Hash in a slot of that size has, and where its default is. */
uint64_t ruby_hash_size(struct view *view, uint64_t object, uint64_t size);
uint64_t ruby_hash_default(uint64_t object, uint64_t size);

/* struct rb_shape, shape.h of 3.3; see ruby_read_shape(). */
struct ruby_shape {
	uint64_t edges, name;
	uint32_t next_index, capacity;
	uint8_t type, pool, padding[2];
	uint32_t parent;
	uint64_t ancestors;
};

/* Then frozen, T_OBJECT, and one that is too complex for values in a row. */
/*
 * Read the shape of an object with those flags, or the parent of a shape; false: its values are in
 * no row.
 */
bool ruby_read_shape(const struct ruby *ruby, struct view *view, uint64_t number,
		     struct ruby_shape *ret);

enum ruby_shape_type { SHAPE_ROOT, SHAPE_VARIABLE, SHAPE_MOST_KNOWN = 3 };
