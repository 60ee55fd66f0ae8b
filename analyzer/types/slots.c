#include "analyzer/types/slots.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/cleanup.h"
#include "analyzer/base/macros.h"

#include <stdlib.h>
#include <string.h>

enum {
	MOST_OF_A_TYPE = 1 << 14,
	MOST_SLOTS = 1 << 24, /* of all types */
	DEEPEST = 24,
	NOT_MADE = UINT32_MAX
};

struct error *slot_table_init(struct slot_table *table, const struct type_table *types,
			      struct memory_account *account)
{
	struct error *error;

	*table = (struct slot_table){ .types = types };
	table->slots.memory.account = table->ranges.memory.account = account;
	error = array_resize(&table->ranges, type_count(types));
	for (size_t i = 0; !error && i < table->ranges.count; i++)
		table->ranges.items[i].first = NOT_MADE;
	return error;
}

void slot_table_deinit(struct slot_table *table)
{
	array_release(&table->slots);
	array_release(&table->ranges);
}

uint32_t tag_of(const struct type_table *types, const struct data_type *type)
{
	const struct type_member *members = type_members(types, type);

	if (type->kind != TYPE_STRUCTURE)
		return NO_TAG;
	for (size_t i = 0; i < type->member_count; i++) {
		const struct data_type *member = type_get(types, members[i].type);

		if ((member->kind == TYPE_NUMBER || member->kind == TYPE_CHARACTER) &&
		    member->size <= sizeof(uint32_t))
			return members[i].offset;
		if (members[i].offset == 0 && member->kind == TYPE_STRUCTURE &&
		    member->size < type->size) {
			uint32_t tag = tag_of(types, member);

			if (tag != NO_TAG)
				return tag;
		}
	}
	return NO_TAG;
}

/* Slots are added to the table from first on, of a value at offset in the type. */
struct making {
	struct slot_table *table;
	size_t first;
};

struct part {
	type_number type;
	uint64_t offset;
	uint32_t member, way, tag;
	bool is_choice;
	size_t depth;
};

static struct error *add_slots(const struct making *making, struct part part);

static struct error *add_pointer(const struct making *making, type_number target,
				 const struct part *part)
{
	if (part->offset % sizeof(uint64_t) != 0)
		return NULL;
	return array_append(&making->table->slots, (struct slot){ .offset = (uint32_t)part->offset,
								  .target = target,
								  .member = part->member,
								  .way = part->way,
								  .tag = part->tag,
								  .is_choice = part->is_choice });
}

/* The way to a member from what is around it, which is never 0. */
static uint32_t way_to(uint32_t whole, uint32_t member)
{
	return (uint32_t)hash_add(whole, member) | 1;
}

static struct error *add_members(const struct making *making, const struct data_type *type,
				 const struct part *whole)
{
	const struct type_table *types = making->table->types;
	const struct type_member *members = type_members(types, type);
	uint32_t tag = tag_of(types, type);
	struct error *error = NULL;

	for (uint32_t i = 0; !error && i < type->member_count; i++) {
		struct part part = {
			.type = members[i].type,
			.offset = whole->offset + members[i].offset,
			.member = whole->is_choice ? whole->member : type->first_member + i,
			.way = whole->is_choice ? whole->way
						: way_to(whole->way, type->first_member + i),
			.tag = tag == NO_TAG ? whole->tag : (uint32_t)(whole->offset + tag),
			.is_choice = whole->is_choice || members[i].is_variant ||
				     type->kind == TYPE_UNION,
			.depth = whole->depth + 1,
		};

		/* A union that is no member itself has only itself to be known by. */
		if (part.is_choice && !whole->is_choice) {
			part.member =
				whole->member == NO_MEMBER ? type->first_member : whole->member;
			part.way = way_to(whole->way, part.member);
		}
		if (!members[i].bit_size)
			error = add_slots(making, part);
	}
	return error;
}

/* Compilers differ in where they put spaces, and "const" of a pointer. */
static type_number find_argument(const struct type_table *types, const char *start, const char *end,
				 bool *ret_points)
{
	static const char before[] = "const ", behind[] = " const";
	_cleanup_(free) char *name = NULL;

	while (end > start && end[-1] == ' ')
		end--;
	*ret_points = end > start && end[-1] == '*';
	end -= *ret_points;
	while (end > start && end[-1] == ' ')
		end--;
	if (strncmp(start, before, sizeof(before) - 1) == 0)
		start += sizeof(before) - 1;
	if ((size_t)(end - start) >= sizeof(behind) &&
	    strncmp(end - (sizeof(behind) - 1), behind, sizeof(behind) - 1) == 0)
		end -= sizeof(behind) - 1;
	name = end > start ? strndup(start, (size_t)(end - start)) : NULL;
	return name ? type_find(types, name) : NO_TYPE;
}

/*
 * The type that the bytes of libstdc++'s "__gnu_cxx::__aligned_membuf<shop::Item>" are kept for, in
 * nodes of containers and beside counts; NO_TYPE: it is none such, or has no name of its own.
 * *ret_points: it is a pointer to that.
 */
static type_number find_kept(const struct type_table *types, const struct data_type *type,
			     bool *ret_points)
{
	static const char *const names[] = { "__gnu_cxx::__aligned_membuf<",
					     "__gnu_cxx::__aligned_buffer<" };

	for (size_t i = 0; type->name && i < COUNT_OF(names); i++) {
		const char *start = type->name + strlen(names[i]);
		const char *end = type->name + strlen(type->name);

		if (strncmp(type->name, names[i], strlen(names[i])) == 0 && end - start > 1)
			return find_argument(types, start, end - 1, ret_points);
	}
	return NO_TYPE;
}

/* Those of a structure, or of what stands in its bytes. */
static struct error *add_structure(const struct making *making, const struct data_type *type,
				   const struct part *whole)
{
	bool points = false;
	type_number kept = find_kept(making->table->types, type, &points);
	struct part part = *whole;

	if (kept == NO_TYPE)
		return add_members(making, type, whole);
	if (points)
		return add_pointer(making, kept, whole);
	if (type_get(making->table->types, kept)->size > type->size)
		return NULL;
	part.type = kept;
	part.depth++;
	return add_slots(making, part);
}

/* Those of the first element, again for each. */
static struct error *add_elements(const struct making *making, const struct data_type *type,
				  const struct part *whole)
{
	const struct data_type *element = type_get(making->table->types, type->target);
	size_t before = making->table->slots.count, each;
	struct part part = *whole;
	struct error *error;

	part.type = type->target;
	part.depth++;
	error = add_slots(making, part);
	each = making->table->slots.count - before;
	if (each == 0 || element->size == 0)
		return error;
	for (uint64_t i = 1; !error && i < type->count; i++) {
		for (size_t j = 0; !error && j < each; j++) {
			struct slot slot = making->table->slots.items[before + j];

			if (making->table->slots.count - making->first >= MOST_OF_A_TYPE ||
			    i * element->size > UINT32_MAX - slot.offset)
				return NULL;
			/* The tag of an element that is a structure is in it. */
			if (slot.tag != NO_TAG && slot.tag != whole->tag)
				slot.tag += (uint32_t)(i * element->size);
			slot.offset += (uint32_t)(i * element->size);
			error = array_append(&making->table->slots, slot);
		}
	}
	return error;
}

static struct error *add_slots(const struct making *making, struct part part)
{
	const struct data_type *type = type_get(making->table->types, part.type);

	if (part.depth == DEEPEST || part.offset > UINT32_MAX ||
	    making->table->slots.count - making->first >= MOST_OF_A_TYPE)
		return NULL;
	switch (type->kind) {
	case TYPE_POINTER:
		return add_pointer(making, type->target, &part);
	case TYPE_STRUCTURE:
		return add_structure(making, type, &part);
	case TYPE_UNION:
		return add_members(making, type, &part);
	case TYPE_ARRAY:
		return add_elements(making, type, &part);
	default:
		return NULL;
	}
}

DEFINE_COMPARE(compare_slots, struct slot, ASCENDING(offset), ASCENDING(target))

struct error *slots_of(struct slot_table *table, type_number type, const struct slot **ret,
		       size_t *ret_count)
{
	struct slot_range *range = &table->ranges.items[type];
	struct error *error = NULL;

	if (range->first == NOT_MADE) {
		const struct making making = { table, table->slots.count };

		*range = (struct slot_range){ (uint32_t)making.first, 0 };
		if (making.first < MOST_SLOTS)
			error = add_slots(
				&making,
				(struct part){ .type = type, .member = NO_MEMBER, .tag = NO_TAG });
		range->count = (uint32_t)(table->slots.count - making.first);
		if (range->count)
			SORT(&table->slots.items[range->first], range->count, compare_slots);
	}
	*ret = table->slots.items ? &table->slots.items[range->first] : NULL;
	*ret_count = range->count;
	return error;
}

struct error *slots_are_all(struct slot_table *table, type_number type, bool *ret)
{
	const struct slot *slots;
	uint64_t words = 0;
	size_t count;

	TRY(slots_of(table, type, &slots, &count));
	for (size_t i = 0; slots && i < count; i++)
		words += i == 0 || slots[i].offset != slots[i - 1].offset;
	*ret = words * sizeof(uint64_t) >= type_get(table->types, type)->size;
	return NULL;
}

const struct slot *slot_at(struct slot_table *table, type_number type, uint64_t offset)
{
	const struct slot *slots;
	size_t count, low = 0, high;
	struct error *error = slots_of(table, type, &slots, &count);

	if (error) {
		error_destroy(error);
		return NULL;
	}
	if (!slots)
		return NULL;
	for (high = count; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (slots[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && slots[low].offset == offset ? &slots[low] : NULL;
}
