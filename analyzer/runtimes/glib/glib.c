/*
 * The types of GLib's GObject, by which GTK, GStreamer and many services name their objects; no
 * symbols are needed. The layouts are those of gobject/gtype.c of 2.74 and 2.84, on 64 bits.
 *
 *	node       ... | how many supers | children | data | name | ... | itself | its supers, of
 *	           which the last is a small number, the fundamental type
 *	data       ... | class | size, private size | ...
 *	class      | node | functions ...
 *	instance   | private parts | class | count of references | ...
 *	boxed      | node | count of references ...        as GStreamer's mini objects
 *	interface  | node of the interface | node of the type that has it | functions ...
 *
 * A name is a number: the place in an array that a variable of libglib refers to.
 */
#include "analyzer/base/address_map.h"
#include "analyzer/runtimes/keeper.h"
#include "analyzer/runtimes/module_data.h"
#include "analyzer/runtimes/runtime.h"

enum {
	WORD = 8,
	/* Before the word for itself. */
	SUPER_COUNT = 0x34,
	DATA = 0x28,
	QUARK = 0x20,
	DATA_WORDS = 12,       /* of which one is the class */
	SMALLEST_BOXED = 0x30, /* smaller ones are values with their type */
	MOST_FUNDAMENTAL = 1024,
	INTERFACE = 8,
	BOXED = 72,
	OBJECT_TYPE = 80,
	NAME_SIZE = 128,
	SURE = 4,	   /* so many names confirm the array of names */
	MOST_PRIVATE = 64, /* sizes: each is tried at each allocation */
};

/* The kinds of blocks that begin with a type; a class's number is the node's address plus this. */
enum kind { OBJECT, CLASS, VTABLE, NODE };

struct type {
	uint64_t node, class;
	uint64_t sizes; /* the address of two numbers */
	uint32_t quark, private_size;
	uint32_t fundamental;
};

struct glib {
	struct object_space space;
	ARRAY(struct type) types;
	struct address_map nodes, classes; /* the places of types */
	ARRAY(uint32_t) private_sizes;	   /* different ones, without 0 */
	uint64_t names;
	uint64_t itself; /* of nodes: the offset of that word */
};

static const struct type *find_type(const struct glib *glib, const struct address_map *map,
				    uint64_t address)
{
	uint32_t place = address_map_find(map, address);

	return place == NOT_IN_MAP ? NULL : &glib->types.items[place];
}

/* Find the class and the sizes of instances. */
static void read_data(struct view *view, uint64_t data, struct type *type)
{
	uint64_t class, node;
	uint16_t sizes[2];

	for (uint64_t i = 0; i < DATA_WORDS && view_word(view, data + i * WORD, &class); i++) {
		if (class % WORD || !image_read_word(view->image, class, &node) ||
		    node != type->node)
			continue;
		type->class = class;
		type->sizes = data + (i + 1) * WORD;
		if (view_read(view, type->sizes, sizes, sizeof(sizes)))
			type->private_size = sizes[1];
		return;
	}
}

static bool read_node(struct view *view, uint64_t node, uint64_t itself, struct type *ret)
{
	const uint64_t place = node + itself;
	uint64_t self, data, fundamental;
	uint8_t supers;

	*ret = (struct type){ .node = node };
	if (!view_word(view, place, &self) || self != node ||
	    !view_read(view, place - SUPER_COUNT, &supers, sizeof(supers)) || supers == 0 ||
	    !view_word(view, place + supers * (uint64_t)WORD, &fundamental) || fundamental == 0 ||
	    fundamental >= MOST_FUNDAMENTAL ||
	    !view_read(view, place - QUARK, &ret->quark, sizeof(ret->quark)) || ret->quark == 0)
		return false;
	ret->fundamental = (uint32_t)fundamental;
	if (view_word(view, place - DATA, &data) && data)
		read_data(view, data, ret);
	return true;
}

static struct error *add_private_size(struct glib *glib, uint32_t size)
{
	if (size == 0 || size % WORD || glib->private_sizes.count == MOST_PRIVATE)
		return NULL;
	array_for_each(known, &glib->private_sizes)
		if (*known == size)
			return NULL;
	return array_append(&glib->private_sizes, size);
}

static struct error *add_type(struct glib *glib, struct type type)
{
	uint32_t place = (uint32_t)glib->types.count;

	TRY(array_append(&glib->types, type));
	TRY(address_map_add(&glib->nodes, type.node, place));
	if (!type.class || address_map_find(&glib->classes, type.class) != NOT_IN_MAP)
		return NULL;
	TRY(address_map_add(&glib->classes, type.class, place));
	return add_private_size(glib, type.private_size);
}

static struct error *find_types(struct glib *glib, uint64_t itself)
{
	const struct allocation_index *index = glib->space.index;
	struct view view = { glib->space.image };
	struct type type;

	bitmap_for_each(id, allocation_used(index))
		if (read_node(&view, allocation_start(index, (allocation_id)id), itself, &type))
			TRY(add_type(glib, type));
	return NULL;
}

/* The type's name by that array of names; false: it has none there. */
static bool read_name(struct view *view, uint64_t names, const struct type *type,
		      char ret[static NAME_SIZE])
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-+";
	uint64_t text;
	size_t length = 0;

	if (!view_word(view, names + type->quark * (uint64_t)WORD, &text) || !text)
		return false;
	while (length < NAME_SIZE - 1 && image_read(view->image, text + length, &ret[length], 1) &&
	       ret[length])
		length++;
	ret[length] = '\0';
	return length > 2 && strspn(ret, allowed) == length;
}

static bool is_names(struct view *view, uint64_t place, uint64_t word, void *data)
{
	struct glib *glib = data;
	char name[NAME_SIZE];

	(void)place;
	if (word % WORD || word < glib->types.items[0].quark)
		return false;
	for (size_t i = 0; i < MIN(glib->types.count, SURE); i++)
		if (!read_name(view, word, &glib->types.items[i], name))
			return false;
	glib->names = word;
	return true;
}

static void find_names(struct glib *glib)
{
	const struct program *program = glib->space.program;

	list_for_each(module, program->modules, program->module_count)
		if (strncmp(module_file_name(module), "libglib-2.0", strlen("libglib-2.0")) == 0 &&
		    module_data_search_in(glib->space.image, module, is_names, glib))
			return;
}

/* The type of an instance behind its private parts, or NULL. */
static const struct type *find_private(const struct glib *glib, struct view *view,
				       struct memory_range range)
{
	uint64_t class;

	array_for_each(size, &glib->private_sizes) {
		const struct type *type;

		if (range.end - range.start < *size + 2 * WORD ||
		    !view_word(view, range.start + *size, &class))
			continue;
		type = find_type(glib, &glib->classes, class);
		if (type && type->private_size == *size)
			return type;
	}
	return NULL;
}

/* Values have a type, too, which says nothing of other blocks that begin with one. */
static bool is_counted(struct view *view, struct memory_range range, const struct type *type)
{
	enum { MOST = 1 << 24 };
	uint32_t words[2]; /* count, state */

	return type->fundamental == BOXED && range.end - range.start >= SMALLEST_BOXED &&
	       view_read(view, range.start + WORD, words, sizeof(words)) && words[0] > 0 &&
	       words[0] < MOST && words[1] < MOST;
}

/* The type of what begins with the node of a type, and what it is of it; NULL: nothing. */
static const struct type *judge_node(const struct glib *glib, struct view *view,
				     struct memory_range range, const struct type *type,
				     enum kind *ret)
{
	uint64_t second;

	*ret = CLASS;
	if (type->class == range.start)
		return type;
	*ret = VTABLE;
	if (type->fundamental == INTERFACE && view_word(view, range.start + WORD, &second) &&
	    (second < MOST_FUNDAMENTAL || find_type(glib, &glib->nodes, second)))
		return type;
	*ret = OBJECT;
	return is_counted(view, range, type) ? type : NULL;
}

static const struct type *judge(const struct glib *glib, struct view *view,
				struct memory_range range, enum kind *ret)
{
	const struct type *type;
	uint64_t word;

	*ret = NODE;
	if (!view_word(view, range.start, &word))
		return NULL;
	type = find_type(glib, &glib->nodes, range.start);
	if (type)
		return type;
	type = find_type(glib, &glib->nodes, word);
	if (type)
		return judge_node(glib, view, range, type, ret);
	*ret = OBJECT;
	type = find_type(glib, &glib->classes, word);
	return type && type->private_size == 0 ? type : find_private(glib, view, range);
}

static struct error *find_instances(struct glib *glib)
{
	const struct allocation_index *index = glib->space.index;
	struct object_classes *classes = &glib->space.classes;
	struct view view = { glib->space.image };
	size_t hint = 0;

	bitmap_for_each(id, allocation_used(index)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);
		const struct type *type;
		enum kind kind;
		uint32_t place;

		if (range.end - range.start < 2 * WORD)
			continue;
		type = judge(glib, &view, range, &kind);
		if (!type)
			continue;
		if (kind == NODE)
			type = glib->types.items; /* all nodes are of one class */
		TRY(object_classes_know(classes, type->node + kind, &place));
		TRY(object_classes_set(classes, (allocation_id)id, place));
	}
	return NULL;
}

static struct error *glib_find_objects(struct object_space *space, struct debug *debug)
{
	/* A node's word for itself: 2.74 has a count in front of all, 2.84 has none. */
	static const uint64_t layouts[] = { 0x48, 0x40 };
	struct glib *glib = (struct glib *)space;

	(void)debug;
	arrays_use(space->account, &glib->types, &glib->nodes, &glib->classes,
		   &glib->private_sizes);
	for (size_t i = 0; i < COUNT_OF(layouts) && glib->types.count < SURE; i++) {
		glib->itself = layouts[i];
		TRY(find_types(glib, glib->itself));
	}
	if (glib->types.count < SURE)
		return NULL;
	find_names(glib);
	if (!glib->names)
		return NULL;
	TRY(object_classes_init(&space->classes, allocation_count(space->index), space->account));
	TRY(find_instances(glib));
	space->has_objects = space->classes.list.count > 0;
	return NULL;
}

static const char *glib_class_name(struct object_space *space, uint64_t number,
				   enum class_name_kind *ret_kind)
{
	static const char *const formats[] = { "%s", "class of %s", "vtable of %s", "GType" };
	struct glib *glib = (struct glib *)space;
	enum kind kind = number % WORD;
	const struct type *type = find_type(glib, &glib->nodes, number - kind);
	struct view view = { space->image };
	char name[NAME_SIZE] = "GObject";

	*ret_kind = CLASS_NAMED;
	if (type)
		read_name(&view, glib->names, type, name);
	return name_pool_print(&space->texts, formats[kind], name);
}

/* Behind the class is the count. A weak holder has the address, too, but is not counted. */
static bool glib_liveness(const struct object_space *space, allocation_id id,
			  struct object_liveness *ret)
{
	const struct glib *glib = (const struct glib *)space;
	uint64_t number = object_class_of(space, id);
	const struct type *type =
		number % WORD == OBJECT ? find_type(glib, &glib->nodes, number) : NULL;
	uint64_t start = allocation_start(space->index, id), word;
	uint32_t count;

	if (!type || type->fundamental != OBJECT_TYPE ||
	    !image_read_word(space->image, start, &word))
		return false;
	if (!find_type(glib, &glib->classes, word))
		start += type->private_size;
	if (!image_read(space->image, start + WORD, &count, sizeof(count)))
		return false;
	*ret = (struct object_liveness){ .has_count = true, .count = count, .address = start };
	return true;
}

static struct error *visit_type(const struct glib *glib, const struct type *type,
				struct keeper *keeper)
{
	const uint64_t itself = type->node + glib->itself;
	char name[NAME_SIZE];
	uint64_t text;
	uint8_t supers;

	keep_numbers(keeper, itself - SUPER_COUNT, sizeof(supers));
	keep_numbers(keeper, itself - QUARK, sizeof(type->quark));
	if (view_read(&keeper->view, itself - SUPER_COUNT, &supers, sizeof(supers)))
		keep_numbers(keeper, itself + supers * (uint64_t)WORD, WORD);
	if (type->sizes)
		keep_numbers(keeper, type->sizes, sizeof(uint32_t));
	if (read_name(&keeper->view, glib->names, type, name) &&
	    view_word(&keeper->view, glib->names + type->quark * (uint64_t)WORD, &text))
		keep_name(keeper, text, strlen(name) + 1);
	return keeper->error;
}

/* Behind an instance's class, or a boxed value's type, is the count; of a vtable, its type. */
static struct error *visit_instance(const struct glib *glib, allocation_id id,
				    struct keeper *keeper)
{
	enum kind kind = object_class_of(&glib->space, id) % WORD;
	uint64_t start = allocation_start(glib->space.index, id), word;
	const struct type *type;

	if (kind != OBJECT && kind != VTABLE)
		return NULL;
	type = find_type(glib, &glib->nodes, object_class_of(&glib->space, id) - kind);
	if (!type || !view_word(&keeper->view, start, &word))
		return NULL;
	if (type->private_size && !find_type(glib, &glib->classes, word))
		start += type->private_size;
	if (view_word(&keeper->view, start + WORD, &word) &&
	    (kind == OBJECT || word < MOST_FUNDAMENTAL))
		keep_numbers(keeper, start + WORD,
			     type->fundamental == BOXED ? WORD : sizeof(uint32_t));
	return keeper->error;
}

static struct error *glib_visit_structure(struct object_space *space,
					  const struct structure_visitor *visitor)
{
	const struct glib *glib = (const struct glib *)space;
	struct keeper keeper = { visitor, .view = { space->image } };

	if (!space->has_objects)
		return NULL;
	array_for_each(type, &glib->types)
		TRY(visit_type(glib, type, &keeper));
	bitmap_for_each(id, allocation_used(space->index))
		TRY(visit_instance(glib, (allocation_id)id, &keeper));
	return NULL;
}

static struct error *glib_open(struct object_space *space, bool *ret)
{
	*ret = space->index && image_word_size(space->image) == WORD;
	return NULL;
}

static void glib_release(struct object_space *space)
{
	struct glib *glib = (struct glib *)space;

	tables_release(&glib->nodes, &glib->classes);
	arrays_release(&glib->types, &glib->private_sizes);
}

const struct runtime runtime_glib = {
	.name = "glib",
	.modules = "libgobject-2.0",
	.space_size = sizeof(struct glib),
	.open = glib_open,
	.release = glib_release,
	.find_objects = glib_find_objects,
	.class_name = glib_class_name,
	.visit_structure = glib_visit_structure,
	.liveness = glib_liveness,
	.counts_words = true,
};
