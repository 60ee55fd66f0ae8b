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
#include "analyzer/base/macros.h"
#include "analyzer/base/table.h"
#include "analyzer/base/text.h"
#include "analyzer/runtimes/module_data.h"
#include "analyzer/runtimes/runtime.h"

#include <stdlib.h>
#include <xxhash.h>

enum {
	WORD = 8,
	NAME_SIZE = 64,
	RING_WORDS = 48,      /* of a context, that may be the heads of rings */
	MOST_CLASSES = 4096,  /* names; what comes later is of the first */
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

struct class
{
	uint64_t number; /* the address of the name that was found first */
	uint64_t hash;	 /* of the name */
	char *name;	 /* "memory context CacheMemoryContext" */
};

struct object {
	allocation_id id;
	uint64_t class;
};

struct postgresql {
	struct object_space space;
	const struct image *image;
	const struct allocation_index *index;
	uint64_t top;	  /* the context above all */
	uint64_t methods; /* the offset of that field */
	struct bitmap known;
	ARRAY(struct object) objects;
	HASH_TABLE(struct class) classes;
};

struct context {
	uint64_t address, class;
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

/* The used allocation that begins there, or NO_ALLOCATION. */
static allocation_id find_start(const struct allocation_index *index, uint64_t address)
{
	allocation_id id = address % WORD ? NO_ALLOCATION : allocation_find(index, address);

	return id != NO_ALLOCATION && allocation_start(index, id) == address &&
			       bitmap_get(allocation_used(index), id)
		       ? id
		       : NO_ALLOCATION;
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
	if (find_start(database->index, word) == NO_ALLOCATION)
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

static struct error *postgresql_open(const struct runtime_context *context,
				     struct object_space **ret)
{
	struct postgresql found = { .image = context->image, .index = context->index };
	struct postgresql *database;

	if (image_word_size(context->image) != WORD || !context->index ||
	    !module_data_search(context->image, context->program, is_top, &found))
		return NULL;
	database = malloc(sizeof(*database));
	TRY_MEMORY(database);
	*database = found;
	arrays_use(context->account, &database->known, &database->objects, &database->classes,
		   &database->classes.slots);
	*ret = &database->space;
	return NULL;
}

static void forget(struct postgresql *database)
{
	array_for_each(class, &database->classes)
		free(class->name);
	table_release(&database->classes);
	array_release(&database->objects);
	bitmap_deinit(&database->known);
}

static void postgresql_close(struct object_space *space)
{
	forget((struct postgresql *)space);
	free(space);
}

/* The number of the class of contexts of that name, which stands at address. */
static struct error *find_class(struct postgresql *database, uint64_t address, const char *name,
				uint64_t *ret)
{
	bool has_room = database->classes.count < MOST_CLASSES;
	uint64_t hash = has_room ? XXH3_64bits(name, strlen(name)) : 0;
	struct class *class = table_obtain(&database->classes, hash, item, item->hash == hash,
					   (struct class){ address, hash, NULL });

	if (class && !class->name)
		class->name = format_text("memory context %s", has_room ? name : "of other names");
	TRY_MEMORY(class && class->name);
	*ret = class->number;
	return NULL;
}

/* Hash tables have their name as the identifier. Other identifiers are texts of queries. */
static struct error *class_of_context(struct search *search, uint64_t context, uint64_t *ret)
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
static struct error *add_object(struct postgresql *database, uint64_t address, uint64_t class,
				bool *ret_added)
{
	allocation_id id = find_start(database->index, address);

	*ret_added = id != NO_ALLOCATION && !bitmap_get(&database->known, id);
	if (!*ret_added)
		return NULL;
	bitmap_set(&database->known, id);
	return array_append(&database->objects, (struct object){ id, class });
}

/*
 * The blocks of an AllocSet; each tells whose it is. One of them stands behind the context, in the
 * same allocation.
 */
static struct error *add_set(struct search *search, uint64_t context, uint64_t class)
{
	struct postgresql *database = search->database;
	uint64_t block, set, next;

	if (!read_field(search, context, OWN, &block))
		return NULL;
	while (search->steps++ < MOST_STEPS && view_word(&search->view, block, &set) &&
	       set == context && view_word(&search->view, block + 2 * WORD, &next)) {
		bool added;

		TRY(add_object(database, block, class, &added));
		if (!added && allocation_find(database->index, block) !=
				      allocation_find(database->index, context))
			return NULL;
		block = next;
	}
	return NULL;
}

/* The blocks of a ring whose head is at the address. */
static struct error *add_ring(struct search *search, uint64_t head, uint64_t class)
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

static int compare_objects(const void *a, const void *b)
{
	const struct object *left = a, *right = b;

	return left->id < right->id ? -1 : left->id > right->id;
}

static int compare_classes(const void *a, const void *b)
{
	const struct class *left = a, *right = b;

	return left->number < right->number ? -1 : left->number > right->number;
}

static struct error *find_all(struct postgresql *database)
{
	_cleanup_(array_release) struct search search = {
		.open.memory.account = database->objects.memory.account,
		.database = database,
		.view = { database->image },
	};

	TRY(bitmap_init(&database->known, allocation_count(database->index),
			database->objects.memory.account));
	TRY(visit_contexts(&search));
	array_sort(&database->objects, compare_objects);
	array_sort(&database->classes, compare_classes);
	database->space.has_objects = database->objects.count > 0;
	return NULL;
}

static struct error *find_objects(struct object_space *space, struct debug *debug)
{
	struct postgresql *database = (struct postgresql *)space;
	struct error *error = find_all(database);

	(void)debug;
	if (error)
		forget(database);
	return error;
}

static uint64_t class_of(const struct object_space *space, allocation_id id)
{
	const struct postgresql *database = (const struct postgresql *)space;
	const struct object key = { .id = id }, *found;

	if (!bitmap_get(&database->known, id))
		return 0;
	found = bsearch(&key, database->objects.items, database->objects.count, sizeof(key),
			compare_objects);
	return found ? found->class : 0;
}

static const struct class *find_number(const struct object_space *space, uint64_t number)
{
	const struct postgresql *database = (const struct postgresql *)space;
	const struct class key = { .number = number };

	return database->classes.count
		       ? bsearch(&key, database->classes.items, database->classes.count,
				 sizeof(key), compare_classes)
		       : NULL;
}

static bool has_class(const struct object_space *space, uint64_t number)
{
	return find_number(space, number);
}

static size_t class_count(const struct object_space *space)
{
	return ((const struct postgresql *)space)->classes.count;
}

static const char *class_name(struct object_space *space, uint64_t number,
			      enum class_name_kind *ret_kind)
{
	const struct class *class = find_number(space, number);

	*ret_kind = CLASS_NAMED;
	return class ? class->name : "memory context";
}

const struct runtime runtime_postgresql = {
	.name = "postgresql",
	.modules = "=TopMemoryContext",
	.open = postgresql_open,
	.close = postgresql_close,
	.find_objects = find_objects,
	.is_certain = true,
	.class_of = class_of,
	.has_class = has_class,
	.class_count = class_count,
	.class_name = class_name,
	.has_regions = true,
};
