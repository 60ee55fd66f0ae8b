#include "analyzer/runtimes/crystal/crystal.h"

#include "analyzer/base/array.h"
#include "analyzer/runtimes/crystal/callers.h"

#include <string.h>

/* The objects of a type. */
struct kind {
	uint8_t container;	  /* enum crystal_container */
	bool known;		  /* the container is looked up */
	bool certain;		  /* its objects do refer to buffers */
	uint32_t held, plain;	  /* buffers, and those that look like no object */
	uint32_t atomic, scanned; /* objects, of a type that is guessed */
	uint64_t capacities;	  /* of buffers: a bit for each, modulo 64 */
	uint64_t least, most;	  /* sizes that elements of all may have */
};

struct crystal {
	struct object_space space;
	uint32_t fiber_type;	     /* 0: there are no fibers */
	struct crystal_types *types; /* NULL: not known */
	struct bitmap objects;
	ARRAY(struct kind) kinds; /* by type */
	struct crystal_parts *parts;
	struct debug *debug;
	struct crystal_callers *callers; /* NULL: nobody asked yet */
};

static bool read_number(const struct crystal *crystal, allocation_id id, uint32_t *ret)
{
	return allocation_size(crystal->space.index, id) >= sizeof(*ret) &&
	       image_read_u32(crystal->space.image, allocation_start(crystal->space.index, id),
			      ret);
}

/*
 * True if everything behind the first size bytes is 0: the collector clears all memory that may
 * hold pointers, and objects never write there.
 */
static bool is_clear_behind(const struct crystal *crystal, allocation_id id, uint64_t size)
{
	uint64_t start = allocation_start(crystal->space.index, id), available;
	uint64_t end = allocation_size(crystal->space.index, id);
	const uint8_t *bytes = image_bytes(crystal->space.image, start, &available);

	if (!bytes || available < end)
		return true;
	for (uint64_t i = size; i < end; i++)
		if (bytes[i])
			return false;
	return true;
}

/* True if the allocation fits the type whose number it begins with. */
static bool is_object(const struct crystal *crystal, allocation_id id, const struct bitmap *atomic)
{
	const struct crystal_type *type;
	uint32_t number;

	if (!read_number(crystal, id, &number) || number == 0 || number >= MOST_TYPES)
		return false;
	if (number == STRING_TYPE)
		return crystal_is_string(&crystal->space.context, id);
	type = crystal_type_find(crystal->types, number);
	return type && (type->guessed || type->atomic == (atomic && bitmap_get(atomic, id))) &&
	       crystal_size_fits(allocation_size(crystal->space.index, id), type->size) &&
	       (type->guessed || type->atomic || is_clear_behind(crystal, id, type->size));
}

static void find_objects(struct crystal *crystal)
{
	const struct allocation_index *index = crystal->space.index;
	const struct bitmap *collectable = allocation_having(index, TRAIT_COLLECTABLE);
	const struct bitmap *atomic = allocation_having(index, TRAIT_POINTERLESS);

	if (!collectable)
		return;
	bitmap_for_each(id, collectable)
		if (bitmap_get(allocation_used(index), id) &&
		    is_object(crystal, (allocation_id)id, atomic))
			bitmap_set(&crystal->objects, id);
}

static bool begins_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool ends_in(const char *text, const char *part)
{
	const char *place = strrchr(text, '@');

	return place && begins_with(place + 1, part);
}

/* By the class's own name, or by the file of the library that declares it. */
static enum crystal_container container_called(const char *name, bool certain)
{
	static const struct {
		const char *name, *file;
		enum crystal_container container;
	} known[] = {
		{ "Array(", "array.cr:", CONTAINER_ARRAY },
		{ "Deque(", "deque.cr:", CONTAINER_DEQUE },
		{ "Hash(", "hash.cr:", CONTAINER_HASH },
	};

	if (!name)
		return CONTAINER_NONE;
	for (size_t i = 0; i < COUNT_OF(known); i++)
		if (certain ? begins_with(name, known[i].name) : ends_in(name, known[i].file))
			return known[i].container;
	return certain || strchr(name, '@') ? CONTAINER_NONE : CONTAINER_UNKNOWN;
}

static struct kind *kind_of(struct crystal *crystal, allocation_id id)
{
	uint32_t number = crystal_type_of(crystal, id);
	size_t index = crystal_type_index(crystal->types, number);
	struct kind *kind;
	bool certain;

	if (number <= STRING_TYPE || index == crystal_type_count(crystal->types))
		return NULL;
	kind = &crystal->kinds.items[index];
	if (!kind->known) {
		const char *name = crystal_type_name(crystal->types, number, &certain);

		kind->known = true;
		kind->container = container_called(name, certain);
		kind->certain = kind->container != CONTAINER_UNKNOWN;
	}
	return kind;
}

size_t crystal_buffers_of(struct crystal *crystal, allocation_id id,
			  struct crystal_buffer ret[static CRYSTAL_BUFFERS])
{
	const struct kind *kind = kind_of(crystal, id);
	size_t count = kind ? crystal_find_buffers(&crystal->space.context, id,
						   (enum crystal_container)kind->container, ret)
			    : 0;
	size_t kept = 0;

	/* A guess is not enough to call a buffer what looks like an object. */
	for (size_t i = 0; i < count; i++)
		if (kind->certain || !bitmap_get(&crystal->objects, ret[i].id))
			ret[kept++] = ret[i];
	return kept;
}

/* Narrow down the size of elements, if the buffer is an Array's. */
static void measure(const struct crystal *crystal, struct kind *kind,
		    const struct crystal_buffer *buffer)
{
	enum { LARGEST = 4096 }; /* larger ones take time, and add nothing */
	uint64_t size = allocation_size(crystal->space.index, buffer->id);
	uint64_t most = buffer->capacity ? size / buffer->capacity : 0;
	uint64_t least = most;

	if (buffer->role != ROLE_ARRAY_ELEMENTS || most == 0 || size > LARGEST)
		return;
	while (least > 1 && (crystal_size_fits(size, (least - 1) * buffer->capacity) ||
			     !crystal_size_fits(size, least * buffer->capacity)))
		least--;
	if (!kind->capacities || most < kind->most)
		kind->most = most;
	if (least > kind->least)
		kind->least = least;
	kind->capacities |= UINT64_C(1) << buffer->capacity % 64;
}

/* True if the buffers agree on the size of elements. */
static bool is_measured(const struct kind *kind)
{
	enum { ENOUGH = 3 };

	return bits_count(kind->capacities) >= ENOUGH && kind->least <= kind->most;
}

/*
 * A type without a name is a container if nearly all memory to which its objects refer, as a
 * container does, looks like no object, or is as large as their capacities say.
 */
static void judge_unknown(struct crystal *crystal)
{
	enum { FEW = 10 }; /* one in so many */

	bitmap_for_each(id, &crystal->objects) {
		struct kind *kind = kind_of(crystal, (allocation_id)id);
		struct crystal_buffer buffers[CRYSTAL_BUFFERS];
		size_t count =
			kind && kind->container == CONTAINER_UNKNOWN
				? crystal_find_buffers(&crystal->space.context, (allocation_id)id,
						       CONTAINER_UNKNOWN, buffers)
				: 0;

		for (size_t i = 0; i < count; i++) {
			measure(crystal, kind, &buffers[i]);
			kind->held++;
			kind->plain += !bitmap_get(&crystal->objects, buffers[i].id);
		}
	}
	array_for_each(kind, &crystal->kinds) {
		if (kind->held > 0 &&
		    (is_measured(kind) || kind->held - kind->plain <= kind->held / FEW))
			kind->certain = true;
	}
}

/* All objects of a type may hold pointers, or none; of a guessed type, the majority decides. */
static void drop_minorities(struct crystal *crystal)
{
	const struct bitmap *atomic = allocation_having(crystal->space.index, TRAIT_POINTERLESS);

	bitmap_for_each(id, &crystal->objects) {
		struct kind *kind = kind_of(crystal, (allocation_id)id);

		if (kind && atomic && bitmap_get(atomic, id))
			kind->atomic++;
		else if (kind)
			kind->scanned++;
	}
	bitmap_for_each(id, &crystal->objects) {
		const struct kind *kind = kind_of(crystal, (allocation_id)id);

		if (kind && (atomic && bitmap_get(atomic, id)) != (kind->atomic > kind->scanned))
			bitmap_clear(&crystal->objects, id);
	}
}

/* Objects of a container's class that are laid out differently are none. */
static void drop_implausible(struct crystal *crystal)
{
	bitmap_for_each(id, &crystal->objects) {
		const struct kind *kind = kind_of(crystal, (allocation_id)id);

		if (kind && kind->certain &&
		    !crystal_may_be(&crystal->space.context, (allocation_id)id,
				    (enum crystal_container)kind->container))
			bitmap_clear(&crystal->objects, id);
	}
}

/* An object's buffer is no object. */
static void drop_buffers(struct crystal *crystal)
{
	judge_unknown(crystal);
	bitmap_for_each(id, &crystal->objects) {
		struct crystal_buffer buffers[CRYSTAL_BUFFERS];
		size_t count = crystal_buffers_of(crystal, (allocation_id)id, buffers);

		for (size_t i = 0; i < count; i++)
			bitmap_clear(&crystal->objects, buffers[i].id);
	}
}

struct crystal *crystal_of(const struct runtimes *runtimes)
{
	return (struct crystal *)runtimes_space(runtimes, &runtime_crystal);
}

static struct error *open_space(struct object_space *space, bool *ret)
{
	*ret = allocation_having(space->index, TRAIT_MANAGED);
	return NULL;
}

static void release(struct object_space *space)
{
	struct crystal *crystal = (struct crystal *)space;

	if (crystal->callers)
		crystal_callers_destroy(take(crystal->callers));
	if (crystal->parts)
		crystal_parts_destroy(take(crystal->parts));
	if (crystal->types)
		crystal_types_destroy(take(crystal->types));
	bitmap_deinit(&crystal->objects);
	array_release(&crystal->kinds);
}

static struct error *find_fibers(struct object_space *space, struct fibers *fibers)
{
	struct crystal *crystal = (struct crystal *)space;

	return crystal_find_fibers(&crystal->space.context, fibers, &crystal->fiber_type);
}

static struct error *set_classes(struct crystal *crystal)
{
	struct object_classes *classes = &crystal->space.classes;
	uint32_t place;

	TRY(object_classes_init(classes, allocation_count(crystal->space.index),
				crystal->space.account));
	TRY(object_classes_know(classes, STRING_TYPE, &place));
	for (size_t i = 0; i < crystal_type_count(crystal->types); i++)
		TRY(object_classes_know(classes, crystal_type_at(crystal->types, i)->number,
					&place));
	bitmap_for_each(id, &crystal->objects) {
		place = address_map_find(&classes->places,
					 crystal_type_of(crystal, (allocation_id)id));
		if (place != NOT_IN_MAP)
			TRY(object_classes_set(classes, (allocation_id)id, place));
	}
	return NULL;
}

/* The types are known. */
static struct error *find_all_objects(struct crystal *crystal)
{
	struct memory_account *account = crystal->space.account;

	crystal->kinds.memory.account = account;
	TRY(array_resize(&crystal->kinds, crystal_type_count(crystal->types) + 1));
	TRY(bitmap_init(&crystal->objects, allocation_count(crystal->space.index), account));
	find_objects(crystal);
	drop_implausible(crystal);
	TRY(crystal_drop_closures(&crystal->space.context, crystal->types, &crystal->objects));
	drop_minorities(crystal);
	drop_buffers(crystal);
	crystal_types_set_fiber(crystal->types, crystal->fiber_type);
	TRY(set_classes(crystal));
	return crystal_parts_create(crystal, &crystal->space.context, &crystal->objects,
				    crystal->types, &crystal->parts);
}

static struct error *learn_objects(struct object_space *space, struct debug *debug)
{
	struct crystal *crystal = (struct crystal *)space;
	const struct runtime_context *context = &crystal->space.context;
	struct error *error = crystal_types_create(context->image, context->program, debug,
						   context->account, &crystal->types);

	crystal->debug = debug;
	if (!error && crystal->types) {
		error = find_all_objects(crystal);
		space->has_objects = !error;
	}
	return error;
}

static bool is_part(const struct object_space *space, uint64_t number)
{
	return crystal_parts_have(((const struct crystal *)space)->parts, number);
}

static bool part_of(const struct object_space *space, allocation_id id, struct object_part *ret)
{
	return crystal_parts_find(((const struct crystal *)space)->parts, id, ret);
}

static const char *class_name(struct object_space *space, uint64_t number,
			      enum class_name_kind *ret_kind)
{
	struct crystal *crystal = (struct crystal *)space;
	bool certain;
	const char *name;

	*ret_kind = CLASS_NAMED;
	if (is_part(space, number))
		return crystal_part_name(crystal->parts, number);
	name = crystal_type_name(crystal->types, (uint32_t)number, &certain);
	*ret_kind = certain			? CLASS_NAMED
		    : name && strchr(name, '@') ? CLASS_PLACED
						: CLASS_NUMBERED;
	return name;
}

static bool visit_bases(struct object_space *space, uint64_t number,
			bool (*visit)(void *data, const char *name), void *data)
{
	struct crystal *crystal = (struct crystal *)space;
	const char *name;

	if (!is_part(space, number))
		return crystal_type_visit_bases(crystal->types, (uint32_t)number, visit, data);
	name = crystal_part_name(crystal->parts, number);
	return name && visit(data, name + strlen(HELD_BY));
}

static const char *field_name(struct object_space *space, uint64_t number, uint64_t offset)
{
	return crystal_type_field(((struct crystal *)space)->types, (uint32_t)number, offset);
}

static size_t find_makers(struct object_space *space, uint64_t number,
			  const char *ret[static MOST_OBJECT_MAKERS])
{
	struct crystal *crystal = (struct crystal *)space;
	const struct runtime_context *context = &crystal->space.context;
	struct error *error = NULL;

	if (is_part(space, number))
		return 0;
	if (!crystal->callers)
		error = crystal_callers_create(crystal->types, context->image, crystal->debug,
					       context->account, &crystal->callers);
	/* Without memory for them, they are not known. */
	if (error)
		error_destroy(error);
	return error ? 0 : crystal_callers_find(crystal->callers, (uint32_t)number, ret);
}

static bool text_of(const struct object_space *space, allocation_id id, uint64_t *ret_start,
		    uint64_t *ret_size)
{
	const struct crystal *crystal = (const struct crystal *)space;
	uint64_t start = allocation_start(crystal->space.index, id);
	uint32_t size;

	if (crystal_type_of(crystal, id) != STRING_TYPE ||
	    !image_read_u32(crystal->space.image, start + sizeof(size), &size))
		return false;
	*ret_start = start + STRING_HEADER;
	*ret_size = size;
	return true;
}

/* Visit what a String has before its text, and the zero behind it. */
static struct error *visit_string(const struct crystal *crystal, allocation_id id,
				  const struct structure_visitor *visitor)
{
	uint64_t start = allocation_start(crystal->space.index, id), text, size;

	if (!text_of(&crystal->space, id, &text, &size))
		return NULL;
	TRY(visitor->number(visitor->data, start, STRING_HEADER));
	TRY(visitor->number(visitor->data, text + size, 1));
	return visitor->text ? visitor->text(visitor->data, text, size) : NULL;
}

static bool is_container(struct crystal *crystal, allocation_id id)
{
	const struct kind *kind = kind_of(crystal, id);
	struct crystal_buffer buffers[CRYSTAL_BUFFERS];

	if (!kind || kind->container == CONTAINER_NONE)
		return false;
	return kind->container != CONTAINER_UNKNOWN || crystal_buffers_of(crystal, id, buffers) > 0;
}

static struct error *visit_object(struct crystal *crystal, allocation_id id,
				  const struct structure_visitor *visitor)
{
	uint64_t start = allocation_start(crystal->space.index, id);
	uint32_t type = crystal_type_of(crystal, id);

	TRY(visitor->number(visitor->data, start, sizeof(type)));
	if (type == STRING_TYPE)
		return visit_string(crystal, id, visitor);
	if (type == crystal->fiber_type)
		return crystal_visit_fiber(start, visitor);
	return is_container(crystal, id)
		       ? crystal_visit_container(&crystal->space.context, id, visitor)
		       : NULL;
}

static struct error *visit_structure(struct object_space *space,
				     const struct structure_visitor *visitor)
{
	struct crystal *crystal = (struct crystal *)space;

	if (space->has_objects)
		bitmap_for_each(id, &crystal->objects)
			TRY(visit_object(crystal, (allocation_id)id, visitor));
	return NULL;
}

uint32_t crystal_type_of(const struct crystal *crystal, allocation_id id)
{
	uint32_t number = 0;

	if (bitmap_get(&crystal->objects, id))
		read_number(crystal, id, &number);
	return number;
}

const char *crystal_phrase(struct crystal *crystal, const char *part, uint64_t object)
{
	allocation_id id = allocation_find(crystal->space.index, object);
	uint32_t number = id == NO_ALLOCATION ? 0 : crystal_type_of(crystal, id);

	return number ? crystal_type_phrase(crystal->types, part, number) : NULL;
}

bool crystal_is_function(const struct crystal *crystal, uint64_t address)
{
	return crystal_types_have_function(crystal->types, address);
}

const struct runtime runtime_crystal = {
	.name = "crystal",
	.space_size = sizeof(struct crystal),
	.open = open_space,
	.release = release,
	.fibers = &(const struct runtime_fibers){ .find_fibers = find_fibers,
						  .fiber_registers = crystal_fiber_registers },
	.find_objects = learn_objects,
	.class_name = class_name,
	.visit_structure = visit_structure,
	.visit_bases = visit_bases,
	.text = text_of,
	.layout = &(const struct runtime_layout){ is_part, part_of, field_name, find_makers },
};
