/*
 * PostgreSQL's memory contexts: regions that are freed as a whole, in a tree below the variable
 * TopMemoryContext. A context begins an allocation, whose rest is its first chunks, and has more
 * blocks in others. The layouts are those of nodes/memnodes.h and utils/mmgr/ of versions 11 to 18:
 *
 *	context | type, flags | bytes, from 13 on | methods | parent | first child | previous |
 *	        | next | name | identifier | callbacks | what its kind has
 *
 *	AllocSet: it has | first block |        a block | set | previous | next | free | end |
 *chunks Generation, Bump, Slab: | last | first |    a block | previous | next | ... in a ring
 *
 * Contexts of one name are one class, and all blocks are objects of their context's class.
 */
#include "analyzer/base/address_map.h"
#include "analyzer/base/macros.h"
#include "analyzer/program/debug/names.h"
#include "analyzer/runtimes/module_data.h"
#include "analyzer/runtimes/runtime.h"

#include <stdlib.h>
#include <xxhash.h>

enum {
	WORD = 8,
	NAME_SIZE = 64,
	RING_WORDS = 48,      /* of a context, that may be the heads of rings */
	MOST_CLASSES = 4096,  /* names; what comes later is of one class */
	MOST_STEPS = 1 << 24, /* however lists are damaged */
};

/* Words behind the methods. */
enum field {
	PARENT = 1,
	FIRST_CHILD,
	PREVIOUS_CHILD,
	NEXT_CHILD,
	NAME,
	IDENTIFIER,
	CALLBACKS,
	OWN
};

struct postgresql {
	struct object_space space;
	uint64_t top;		    /* the context above all */
	uint64_t methods;	    /* the offset of that field */
	struct address_map classes; /* places, by hashes of names */
	struct name_pool names;
};

struct context {
	uint64_t address;
	uint32_t class;
};

/* The state of the search for contexts. */
struct search {
	ARRAY(struct context) open; /* noted, but what they have is still to be visited */
	struct postgresql *database;
	struct view view;
	uint64_t steps;
};

static bool read_field(struct search *search, uint64_t context, enum field field, uint64_t *ret)
{
	return view_word(&search->view,
			 context + search->database->methods + (uint64_t)field * WORD, ret);
}

/* Read the printable text at address; false: there is none. */
static bool read_text(struct view *view, uint64_t address, char ret[static NAME_SIZE])
{
	size_t length = 0;

	if (!address)
		return false;
	while (length < NAME_SIZE - 1 && view_read(view, address + length, &ret[length], 1) &&
	       ret[length] >= ' ' && ret[length] <= '~')
		length++;
	ret[length] = '\0';
	return length > 0;
}

static bool is_top(struct view *view, uint64_t place, uint64_t word, void *data)
{
	static const uint64_t methods[] = { 2 * WORD, WORD };
	struct postgresql *database = data;
	char text[NAME_SIZE];
	uint64_t name;

	(void)place;
	if (allocation_used_at(database->space.index, word) == NO_ALLOCATION)
		return false;
	for (size_t i = 0; i < COUNT_OF(methods); i++) {
		if (!view_word(view, word + methods[i] + NAME * WORD, &name) ||
		    !read_text(view, name, text) || strcmp(text, "TopMemoryContext") != 0)
			continue;
		database->top = word;
		database->methods = methods[i];
		return true;
	}
	return false;
}

static struct error *postgresql_open(struct object_space *space, bool *ret)
{
	*ret = image_word_size(space->image) == WORD && space->index &&
	       module_data_search(space->image, space->program, is_top, space);
	return NULL;
}

static void postgresql_release(struct object_space *space)
{
	struct postgresql *database = (struct postgresql *)space;

	table_release(&database->classes);
	name_pool_deinit(&database->names);
}

/* The place of the class of contexts of that name, which stands at address. */
static struct error *find_class(struct postgresql *database, uint64_t address, const char *name,
				uint32_t *ret)
{
	struct object_classes *classes = &database->space.classes;
	bool has_room = classes->list.count < MOST_CLASSES;
	uint64_t hash = has_room ? XXH3_64bits(name, strlen(name)) : 0;
	struct object_class *class;

	*ret = address_map_find(&database->classes, hash);
	if (*ret != NOT_IN_MAP)
		return NULL;
	TRY(object_classes_know(classes, address, ret));
	class = &classes->list.items[*ret];
	class->kind = CLASS_NAMED;
	class->name = name_pool_print(&database->names, "memory context %s",
				      has_room ? name : "of other names");
	TRY_MEMORY(class->name);
	return address_map_add(&database->classes, hash, *ret);
}

/* Hash tables have their name as the identifier. Other identifiers are texts of queries. */
static struct error *class_of_context(struct search *search, uint64_t context, uint32_t *ret)
{
	uint64_t address = 0, identifier;
	char name[NAME_SIZE], other[NAME_SIZE];

	if (!read_field(search, context, NAME, &address) ||
	    !read_text(&search->view, address, name)) {
		address = context;
		strcpy(name, "without a name");
	}
	if (strcmp(name, "dynahash") == 0 && read_field(search, context, IDENTIFIER, &identifier) &&
	    read_text(&search->view, identifier, other))
		return find_class(search->database, identifier, other, ret);
	return find_class(search->database, address, name, ret);
}

/* Note the allocation that begins at address, unless it is known; returns whether it was added. */
static struct error *add_object(struct postgresql *database, uint64_t address, uint32_t class,
				bool *ret_added)
{
	allocation_id id = allocation_used_at(database->space.index, address);

	*ret_added = id != NO_ALLOCATION && !object_class_of(&database->space, id);
	return *ret_added ? object_classes_set(&database->space.classes, id, class) : NULL;
}

/*
 * The blocks of an AllocSet; each tells whose it is. One of them stands behind the context, in the
 * same allocation.
 */
static struct error *add_set(struct search *search, uint64_t context, uint32_t class)
{
	struct postgresql *database = search->database;
	uint64_t block, set, next;

	if (!read_field(search, context, OWN, &block))
		return NULL;
	while (search->steps++ < MOST_STEPS && view_word(&search->view, block, &set) &&
	       set == context && view_word(&search->view, block + 2 * WORD, &next)) {
		bool added;

		TRY(add_object(database, block, class, &added));
		if (!added && allocation_find(database->space.index, block) !=
				      allocation_find(database->space.index, context))
			return NULL;
		block = next;
	}
	return NULL;
}

/* The blocks of a ring whose head is at the address. */
static struct error *add_ring(struct search *search, uint64_t head, uint32_t class)
{
	uint64_t block, previous;
	bool added = true;

	if (!view_word(&search->view, head + WORD, &block) ||
	    !view_word(&search->view, block, &previous) || previous != head)
		return NULL;
	while (added && block != head) {
		TRY(add_object(search->database, block, class, &added));
		if (!view_word(&search->view, block + WORD, &block))
			return NULL;
	}
	return NULL;
}

static struct error *add_blocks(struct search *search, struct context context)
{
	uint64_t own = context.address + search->database->methods + OWN * WORD;

	TRY(add_set(search, context.address, context.class));
	for (uint64_t i = 0; i < RING_WORDS; i++)
		TRY(add_ring(search, own + i * WORD, context.class));
	return NULL;
}

static struct error *open_context(struct search *search, uint64_t address, bool *ret_added)
{
	struct context context = { .address = address };

	TRY(class_of_context(search, address, &context.class));
	TRY(add_object(search->database, address, context.class, ret_added));
	return *ret_added ? array_append(&search->open, context) : NULL;
}

/* Open the context's children, which say whose they are. */
static struct error *open_children(struct search *search, uint64_t context)
{
	uint64_t child, parent;
	bool added;

	if (!read_field(search, context, FIRST_CHILD, &child))
		return NULL;
	while (child && read_field(search, child, PARENT, &parent) && parent == context) {
		TRY(open_context(search, child, &added));
		if (!added || !read_field(search, child, NEXT_CHILD, &child))
			return NULL;
	}
	return NULL;
}

static struct error *visit_contexts(struct search *search)
{
	bool added;

	TRY(open_context(search, search->database->top, &added));
	while (search->open.count > 0) {
		struct context context = search->open.items[--search->open.count];

		TRY(add_blocks(search, context));
		TRY(open_children(search, context.address));
	}
	return NULL;
}

static struct error *find_objects(struct object_space *space, struct debug *debug)
{
	_cleanup_(array_release) struct search search = {
		.open.memory.account = space->account,
		.database = (struct postgresql *)space,
		.view = { space->image },
	};

	arrays_use(space->account, &search.database->classes);
	TRY(object_classes_init(&space->classes, allocation_count(space->index), space->account));
	TRY(visit_contexts(&search));
	space->has_objects = space->classes.list.count > 0;
	return NULL;
}

const struct runtime runtime_postgresql = {
	.name = "postgresql",
	.modules = "=TopMemoryContext",
	.space_size = sizeof(struct postgresql),
	.open = postgresql_open,
	.release = postgresql_release,
	.find_objects = find_objects,
	.is_certain = true,
	.has_regions = true,
};
