#include "analyzer/runtimes/crystal/crystal.h"

#include "analyzer/base/table.h"
#include "analyzer/program/debug/names.h"

#include <inttypes.h>
#include <string.h>

/*
 * The holder of parts, as a key:
 *
 *	63        32 31     30 29            0
 *	| type      | how     | offset       |
 */
enum holding {
	BY_MEMBER,  /* at that offset of an object */
	BY_ELEMENT, /* at that offset of each element of its buffer */
	BY_PART,    /* that is held by the member at that offset */
};

enum { HOW_SHIFT = 30, TYPE_SHIFT = 32, MOST_OFFSET = 1 << HOW_SHIFT, MOST_PARTS = 1 << 20 };

struct member {
	uint64_t key;
	uint64_t all, plain; /* allocations that it refers to, and those that are no objects */
};

/* Notes about a part: its member plus 1, and whether the member refers to its start. */
struct noted {
	uint32_t member;
	bool is_start;
	allocation_id holder;
};

struct crystal_parts {
	const struct runtime_context *context;
	const struct bitmap *objects;
	struct crystal *crystal;
	struct crystal_types *types;
	HASH_TABLE(struct member) members;
	ARRAY(struct noted) noted;  /* by id */
	struct bitmap buffers;	    /* of containers */
	ARRAY(allocation_id) queue; /* parts, in the order in which they were found */
	struct view view;
	struct heap_bounds bounds;
	size_t hint;
	struct name_pool names;
};

/* Words that are alike: those of an object, or those of a buffer's elements. */
struct source {
	allocation_id id;
	uint64_t size, element; /* the offsets of words are within elements of that size */
	uint32_t type;
	enum holding how;
	bool is_part;
	uint64_t member; /* the offset of what holds the part, as in its key */
};

/* Called for a word that refers to an allocation. */
typedef struct error *word_user(struct crystal_parts *parts, const struct source *source,
				uint64_t offset, allocation_id target, bool is_start);

static uint64_t make_key(const struct source *source, uint64_t offset)
{
	uint64_t place = source->is_part ? source->member : offset;

	return (uint64_t)source->type << TYPE_SHIFT | (uint64_t)source->how << HOW_SHIFT |
	       (place & (MOST_OFFSET - 1));
}

static enum holding how_of(uint64_t key)
{
	return (enum holding)(key >> HOW_SHIFT & (BY_PART | BY_ELEMENT));
}

/* Visit the words of source that refer to used allocations, as far as they are in the core. */
static struct error *visit_words(struct crystal_parts *parts, const struct source *source,
				 word_user *use)
{
	const struct allocation_index *index = parts->context->index;
	uint64_t start = allocation_start(index, source->id), word;

	for (uint64_t at = 0; at + sizeof(word) <= source->size; at += sizeof(word)) {
		allocation_id target;

		if (!view_word(&parts->view, start + at, &word))
			return NULL;
		if (!heap_bounds_hold(&parts->bounds, word))
			continue;
		target = allocation_find(index, word);
		if (target == NO_ALLOCATION || target == source->id ||
		    !bitmap_get(allocation_used(index), target))
			continue;
		TRY(use(parts, source, source->element ? at % source->element : at, target,
			allocation_range_near(index, target, &parts->hint).start == word));
	}
	return NULL;
}

/* True if the collector allocated it, and it is neither an object nor a container's buffer. */
static bool is_plain(const struct crystal_parts *parts, allocation_id id)
{
	const struct bitmap *collectable =
		allocation_having(parts->context->index, TRAIT_COLLECTABLE);

	return bitmap_get(collectable, id) && !bitmap_get(parts->objects, id) &&
	       !bitmap_get(&parts->buffers, id);
}

static struct member *find_member(struct crystal_parts *parts, uint64_t key)
{
	return table_find(&parts->members, key, one, one->key == key);
}

static struct error *count_word(struct crystal_parts *parts, const struct source *source,
				uint64_t offset, allocation_id target, bool is_start)
{
	uint64_t key = make_key(source, offset);
	struct member *member = parts->members.count < MOST_PARTS
					? table_obtain(&parts->members, key, one, one->key == key,
						       (struct member){ .key = key })
					: find_member(parts, key);

	if (!member)
		return parts->members.count < MOST_PARTS ? &error_no_memory : NULL;
	member->all++;
	member->plain += is_plain(parts, target);
	return NULL;
}

static bool agrees(const struct member *member)
{
	return member->plain > 0 && member->plain >= member->all - member->all / 10;
}

/* True if one member says more about a part than another. */
static bool is_better(const struct member *member, bool is_start, const struct member *other,
		      bool other_is_start)
{
	if (is_start != other_is_start)
		return is_start;
	return member->plain != other->plain ? member->plain > other->plain
					     : member->key < other->key;
}

static struct error *claim_word(struct crystal_parts *parts, const struct source *source,
				uint64_t offset, allocation_id target, bool is_start)
{
	const struct member *member = find_member(parts, make_key(source, offset));
	struct noted *noted = &parts->noted.items[target];

	if (!member || !agrees(member) || !is_plain(parts, target))
		return NULL;
	if (noted->member &&
	    !is_better(member, is_start, &parts->members.items[noted->member - 1], noted->is_start))
		return NULL;
	*noted = (struct noted){
		.member = (uint32_t)(member - parts->members.items) + 1,
		.is_start = is_start,
		.holder = source->id,
	};
	return NULL;
}

/* Claim the targets of a part that no member refers to. */
static struct error *claim_further(struct crystal_parts *parts, const struct source *source,
				   uint64_t offset, allocation_id target, bool is_start)
{
	if (parts->noted.items[target].member || !is_plain(parts, target))
		return NULL;
	TRY(count_word(parts, source, offset, target, is_start));
	TRY(claim_word(parts, source, offset, target, is_start));
	return parts->noted.items[target].member ? array_append(&parts->queue, target) : NULL;
}

static bool has_pointers(const struct crystal_parts *parts, allocation_id id)
{
	const struct bitmap *atomic = allocation_having(parts->context->index, TRAIT_POINTERLESS);

	return !(atomic && bitmap_get(atomic, id));
}

/* The words of the object and of its buffers. */
static struct error *visit_object(struct crystal_parts *parts, allocation_id id, word_user *use)
{
	const struct allocation_index *index = parts->context->index;
	struct source source = { .id = id, .size = allocation_size(index, id) };
	struct crystal_buffer buffers[CRYSTAL_BUFFERS];
	size_t count;

	if (!has_pointers(parts, id))
		return NULL;
	source.type = crystal_type_of(parts->crystal, id);
	TRY(visit_words(parts, &source, use));
	count = crystal_buffers_of(parts->crystal, id, buffers);
	source.how = BY_ELEMENT;
	for (size_t i = 0; i < count; i++) {
		source.id = buffers[i].id;
		source.size = allocation_size(index, source.id);
		source.element = crystal_element_size(source.size, buffers[i].capacity);
		if (buffers[i].role != ROLE_HASH_INDICES && has_pointers(parts, source.id))
			TRY(visit_words(parts, &source, use));
	}
	return NULL;
}

static struct error *visit_objects(struct crystal_parts *parts, word_user *use)
{
	bitmap_for_each(id, parts->objects)
		TRY(visit_object(parts, (allocation_id)id, use));
	return NULL;
}

static void find_buffers(struct crystal_parts *parts)
{
	bitmap_for_each(id, parts->objects) {
		struct crystal_buffer buffers[CRYSTAL_BUFFERS];
		size_t count = crystal_buffers_of(parts->crystal, (allocation_id)id, buffers);

		for (size_t i = 0; i < count; i++)
			bitmap_set(&parts->buffers, buffers[i].id);
	}
}

/* The words of a part: what they lead to belongs to the same member. */
static struct error *visit_part(struct crystal_parts *parts, allocation_id id)
{
	uint64_t key = parts->members.items[parts->noted.items[id].member - 1].key;
	struct source source = {
		.id = id,
		.size = allocation_size(parts->context->index, id),
		.type = (uint32_t)(key >> TYPE_SHIFT),
		.how = how_of(key) == BY_MEMBER ? BY_PART : how_of(key),
		.is_part = true,
		.member = key & (MOST_OFFSET - 1),
	};

	return has_pointers(parts, id) ? visit_words(parts, &source, claim_further) : NULL;
}

static struct error *find_parts(struct crystal_parts *parts)
{
	size_t count = allocation_count(parts->context->index);

	TRY(array_resize(&parts->noted, count + 1));
	TRY(bitmap_init(&parts->buffers, count, parts->context->account));
	find_buffers(parts);
	TRY(visit_objects(parts, count_word));
	TRY(visit_objects(parts, claim_word));
	for (size_t id = 0; id < count; id++)
		if (parts->noted.items[id].member)
			TRY(array_append(&parts->queue, (allocation_id)id));
	for (size_t i = 0; i < parts->queue.count; i++)
		TRY(visit_part(parts, parts->queue.items[i]));
	array_release(&parts->queue);
	bitmap_deinit(&parts->buffers);
	return NULL;
}

struct error *crystal_parts_create(struct crystal *crystal, const struct runtime_context *context,
				   const struct bitmap *objects, struct crystal_types *types,
				   struct crystal_parts **ret)
{
	struct crystal_parts *parts = calloc(1, sizeof(*parts));
	struct error *error;

	TRY_MEMORY(parts);
	*parts = (struct crystal_parts){
		.context = context,
		.objects = objects,
		.crystal = crystal,
		.types = types,
		.members.memory.account = context->account,
		.noted.memory.account = context->account,
		.queue.memory.account = context->account,
		.view = { .image = context->image },
		.bounds = allocation_bounds(context->index),
	};
	error = find_parts(parts);
	if (error)
		crystal_parts_destroy(parts);
	else
		*ret = parts;
	return error;
}

void crystal_parts_destroy(struct crystal_parts *parts)
{
	table_release(&parts->members);
	arrays_release(&parts->noted, &parts->queue);
	bitmap_deinit(&parts->buffers);
	name_pool_deinit(&parts->names);
	free(parts);
}

bool crystal_parts_find(const struct crystal_parts *parts, allocation_id id,
			struct object_part *ret)
{
	const struct noted *noted = &parts->noted.items[id];
	const struct member *member;

	if (!noted->member)
		return false;
	member = &parts->members.items[noted->member - 1];
	*ret = (struct object_part){
		.number = MOST_TYPES + noted->member - 1,
		.holder = noted->holder,
		.count = member->plain,
		.of = member->all,
	};
	return true;
}

bool crystal_parts_have(const struct crystal_parts *parts, uint64_t number)
{
	return number - MOST_TYPES < parts->members.count;
}

/* Drop the suffix of a union with Nil, or of a Slice: its contents are the member itself. */
static int length_of(const char *field)
{
	static const char *const ends[] = { ".union", ".pointer" };
	size_t length = strlen(field);

	for (size_t i = 0; i < COUNT_OF(ends); i++) {
		size_t less = strlen(ends[i]);

		if (length > less && strncmp(field + length - less, ends[i], less) == 0)
			length -= less;
	}
	return (int)length;
}

const char *crystal_part_name(struct crystal_parts *parts, uint64_t number)
{
	uint64_t key = parts->members.items[number - MOST_TYPES].key;
	uint32_t type = (uint32_t)(key >> TYPE_SHIFT);
	enum holding how = how_of(key);
	uint64_t offset = key & (MOST_OFFSET - 1);
	const char *more = how == BY_MEMBER ? "" : "[]", *name, *field;
	bool certain;

	name = crystal_type_name(parts->types, type, &certain);
	if (!name)
		return NULL;
	if (how == BY_ELEMENT)
		return name_pool_print(&parts->names, HELD_BY "%s[]", name);
	field = crystal_type_field(parts->types, type, offset);
	if (!field)
		return name_pool_print(&parts->names, HELD_BY "%s+0x%" PRIx64 "%s", name, offset,
				       more);
	return name_pool_print(&parts->names, HELD_BY "%s@%.*s%s", name, length_of(field), field,
			       more);
}
