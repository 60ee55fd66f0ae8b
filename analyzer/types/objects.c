#include "analyzer/types/typing_parts.h"

#include "analyzer/classify/classes.h"
#include "analyzer/classify/type_names.h"
#include "analyzer/image/view.h"
#include "analyzer/runtimes/runtimes.h"

#include <string.h>

/*
 * Objects of C++ classes, which begin with the address of a vtable: the class that it says is the
 * most derived one, whatever the pointers to the object say. So is the class of an object that a
 * runtime knows.
 */

enum {
	MOST_VTABLES = 1 << 20,
	ENOUGH_OBJECTS = 1 << 18, /* looked at where only what leaked is named */
};

struct objects {
	struct typing *typing;
	struct address_map types;    /* by vtable, or what is none: then NO_TYPE */
	const struct region *region; /* that a first word led to last; NULL: none */
};

/* The type of the class whose vtable that is; a copy of its name and size counts as well. */
static struct error *find_class(struct objects *objects, uint64_t vtable, type_number *ret)
{
	struct typing *typing = objects->typing;
	struct classes *classes = typing->input.classes;
	uint32_t known = address_map_find(&objects->types, vtable);
	const char *name;

	*ret = known == NOT_IN_MAP ? NO_TYPE : known;
	if (known != NOT_IN_MAP || objects->types.count >= MOST_VTABLES)
		return NULL;
	name = classes && classes_is_class(classes, vtable) &&
			       classes_control_block(classes, vtable) == NO_CONTROL_BLOCK
		       ? classes_full_name(classes, vtable)
		       : NULL;
	if (name)
		*ret = type_find(typing->table, name);
	return address_map_add(&objects->types, vtable, *ret);
}

/* True if the allocation was made for a value of the type; is_known: other evidence says so. */
static bool fits(struct typing *typing, allocation_id id, type_number number, bool is_known)
{
	struct memory_range range = range_of(typing, id);

	return is_known ? typing_type(typing, number)->size <= range.end - range.start
			: typing_fit_of_one(typing, range, number) == FIT_ONE;
}

static struct error *set_object(struct typing *typing, allocation_id id, type_number number,
				bool is_known)
{
	if (number == NO_TYPE || typing_is_stated(typing, id) ||
	    typing_is_denied(typing, id, number) ||
	    (known_type(typing, id) == number && known_fit(typing, id) == FIT_ONE) ||
	    !fits(typing, id, number, is_known))
		return NULL;
	return typing_begin_at(typing, id, number, FIT_ONE, OF_VARIABLE | number, false);
}

/* The type of an object of a language whose debug information has its class. */
static struct error *find_runtime_class(struct objects *objects, allocation_id id, type_number *ret)
{
	const struct typing *typing = objects->typing;
	uint64_t class = runtimes_class_of(typing->input.runtimes, id);
	uint32_t known = address_map_find(&objects->types, class);
	const char *name;

	*ret = known == NOT_IN_MAP ? NO_TYPE : known;
	if (known != NOT_IN_MAP || objects->types.count >= MOST_VTABLES)
		return NULL;
	name = runtimes_type_name(typing->input.runtimes, id);
	if (name)
		*ret = type_find(typing->table, name);
	return address_map_add(&objects->types, class, *ret);
}

/* True if an allocation that begins with the word may begin with a vtable, which is in a file. */
static bool may_be_object(struct objects *objects, uint64_t word)
{
	if (word == 0 || word % objects->typing->word != 0)
		return false;
	if (!objects->region || word < objects->region->start || word >= objects->region->end)
		objects->region = image_find(objects->typing->input.image, word);
	return objects->region && objects->region->mapping;
}

enum { AHEAD = 16 }; /* allocations whose first words are fetched */

static struct error *set_one(struct objects *objects, allocation_id id)
{
	struct typing *typing = objects->typing;
	struct memory_range range = range_of(typing, id);
	type_number number = NO_TYPE;
	bool is_known = runtimes_have_fields(typing->input.runtimes, id);
	uint64_t word;

	if (is_known)
		TRY(find_runtime_class(objects, id, &number));
	else if (range.end - range.start >= typing->word && read_word(typing, range.start, &word) &&
		 may_be_object(objects, word))
		TRY(find_class(objects, word, &number));
	return set_object(typing, id, number, is_known);
}

/* Choose which to look at: all, or what leaked and a sample of the others. */
static struct error *choose(struct typing *typing, struct bitmap *ret)
{
	const struct bitmap *used = allocation_used(typing->input.index);
	const struct bitmap *leaked = typing->input.leaked;
	size_t skipped = leaked ? used->count / ENOUGH_OBJECTS : 0;

	TRY(bitmap_init(ret, used->count, typing->input.account));
	bitmap_copy(ret, skipped ? leaked : used);
	for (size_t id = 0; skipped && id < used->count; id += skipped + 1)
		bitmap_set(ret, id);
	bitmap_and(ret, used);
	typing->is_partial |= skipped > 0;
	return NULL;
}

/* True if a type of the table is that of a class with a vtable, to which a member leads. */
static bool has_vtables(const struct type_table *types)
{
	for (type_number i = 1; i < type_count(types); i++) {
		const struct data_type *type = type_get(types, i);
		const struct type_member *members = type_members(types, type);

		for (size_t j = 0; type->kind == TYPE_STRUCTURE && j < type->member_count; j++)
			if (members[j].name && strncmp(members[j].name, "_vptr", 5) == 0)
				return true;
	}
	return false;
}

static struct error *set_all(struct objects *objects)
{
	struct typing *typing = objects->typing;
	_cleanup_(bitmap_deinit) struct bitmap chosen = { 0 };
	uint64_t told = 0;

	TRY(choose(typing, &chosen));
	bitmap_for_each(id, &chosen) {
		if (id + AHEAD < chosen.count && bitmap_get(&chosen, id + AHEAD))
			view_fetch(&typing->last->view,
				   range_of(typing, (allocation_id)(id + AHEAD)).start);
		if (!progress_pass(typing->input.progress, id, &told))
			return error_create(ERROR_INTERRUPTED, "interrupted");
		TRY(set_one(objects, (allocation_id)id));
	}
	return NULL;
}

struct error *typing_set_objects(struct typing *typing)
{
	struct objects objects = { typing, { .memory.account = typing->input.account }, NULL };
	bool has_objects = runtimes_have_objects(typing->input.runtimes) ||
			   (typing->input.classes && has_vtables(typing->table));
	struct error *error = has_objects ? set_all(&objects) : NULL;

	table_release(&objects.types);
	return error;
}

bool typing_is_settled(const struct typing *typing, allocation_id id)
{
	return typing_is_stated(typing, id) ||
	       (known_fit(typing, id) == FIT_ONE && runtimes_type_name(typing->input.runtimes, id));
}
