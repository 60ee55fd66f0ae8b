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

	*table = (struct slot_table){ .types = types, .word = type_word_size(types) };
	arrays_use(account, &table->slots, &table->ranges, &table->guards);
	error = array_resize(&table->ranges, type_count(types));
	for (size_t i = 0; !error && i < table->ranges.count; i++)
		table->ranges.items[i].first = NOT_MADE;
	return error;
}

void slot_table_deinit(struct slot_table *table)
{
	arrays_release(&table->slots, &table->guards, &table->ranges);
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

uint32_t next_tag_of(const struct type_table *types, const struct data_type *type, uint32_t tag)
{
	const struct type_member *members = type_members(types, type);

	for (size_t i = 0; tag != NO_TAG && i < type->member_count; i++) {
		const struct data_type *member = type_get(types, members[i].type);

		if (members[i].offset > tag && !members[i].bit_size &&
		    (member->kind == TYPE_NUMBER || member->kind == TYPE_CHARACTER) &&
		    member->size <= sizeof(uint32_t))
			return members[i].offset;
	}
	return tag;
}

/* True if it is a structure with pointers to functions. */
static bool is_operations(const struct type_table *types, const struct data_type *type)
{
	const struct type_member *members = type_members(types, type);

	for (size_t i = 0; type->kind == TYPE_STRUCTURE && i < type->member_count; i++) {
		const struct data_type *member = type_get(types, members[i].type);

		if (member->kind == TYPE_POINTER &&
		    type_get(types, member->target)->kind == TYPE_FUNCTION)
			return true;
	}
	return false;
}

/*
 * Like kind_pointer_of(), for a structure in a union: a pointer to operations, or a union that may
 * be one.
 */
static uint32_t operations_of(const struct type_table *types, const struct data_type *type)
{
	const struct type_member *members = type_members(types, type);

	for (size_t i = 0; type->kind == TYPE_STRUCTURE && i < type->member_count; i++) {
		const struct data_type *member = type_get(types, members[i].type);
		const struct type_member *choices = &members[i];
		size_t count = 1;

		if (member->kind == TYPE_UNION) {
			choices = type_members(types, member);
			count = member->member_count;
		}
		for (size_t j = 0; j < count; j++) {
			const struct data_type *choice = type_get(types, choices[j].type);

			if (choice->kind == TYPE_POINTER &&
			    is_operations(types, type_get(types, choice->target)))
				return members[i].offset;
		}
	}
	return NO_TAG;
}

uint32_t kind_pointer_of(const struct type_table *types, type_number number)
{
	const struct data_type *type = type_get(types, number);
	const struct type_member *members = type_members(types, type);

	for (size_t i = 0; type->kind == TYPE_STRUCTURE && i < type->member_count; i++) {
		const struct data_type *member = type_get(types, members[i].type);

		if (member->kind == TYPE_POINTER && member->target != number &&
		    type_get(types, member->target)->kind == TYPE_STRUCTURE)
			return members[i].offset;
	}
	return NO_TAG;
}

/* Slots are added to the table from first on, of a value at offset in the type. */
struct making {
	struct slot_table *table;
	size_t first;
};

/* A part that exists only if a number at offset of the whole type says so. */
struct guarded {
	const struct guarded *outer;
	struct type_variant when;
};

struct part {
	type_number type;
	uint64_t offset, choice_start; /* where the outermost union around it begins */
	uint32_t member, way, tag, next_tag, kind;
	bool is_choice, is_pointer;
	const struct guarded *guarded; /* or NULL */
	size_t depth;
};

/* The way to a member from what is around it, which is never 0. */
static uint32_t way_to(uint32_t whole, uint32_t member)
{
	return (uint32_t)hash_add(whole, member) | 1;
}

static struct error *add_slots(const struct making *making, struct part part);

static struct error *add_pointer(const struct making *making, type_number target,
				 const struct part *part)
{
	struct slot_table *table = making->table;
	struct slot slot = {
		.offset = (uint32_t)part->offset,
		.target = target,
		.member = part->member,
		.way = part->way,
		.tag = part->tag,
		.next_tag = part->next_tag,
		.kind = part->kind,
		.is_choice = part->is_choice,
		.is_pointer = part->is_pointer,
		.guards = (uint32_t)table->guards.count,
	};

	if (part->offset % table->word != 0)
		return NULL;
	if (part->is_choice && part->offset > part->choice_start) {
		slot.place = (uint32_t)(part->offset - part->choice_start);
		slot.way = way_to(slot.way, slot.place);
	}
	if (table->guards.count > MOST_SLOTS)
		slot.is_choice = true;
	for (const struct guarded *at = part->guarded; at && table->guards.count <= MOST_SLOTS;
	     at = at->outer, slot.guard_count++) {
		struct type_variant when = at->when;

		when.offset = slot.offset - when.offset;
		TRY(array_append(&table->guards, when));
	}
	return array_append(&table->slots, slot);
}

static bool stands(const struct type_table *types, const struct image *image,
		   const struct type_variant *guard, uint64_t address)
{
	uint64_t value = 0;

	if (!image_read(image, address - (uint64_t)(int32_t)guard->offset, &value, guard->size))
		return false;
	for (uint32_t i = 0; i < guard->other_count; i++) {
		const struct type_variant *other = type_variants(types, guard->first_other + i);

		if (other->other_count == 0 && other->value == value)
			return false;
	}
	return guard->other_count ||
	       (guard->or_more ? value >= guard->value : value == guard->value);
}

bool slot_guards_agree(const struct slot_table *table, const struct image *image,
		       const struct slot *slot, uint64_t address)
{
	for (uint32_t i = 0; i < slot->guard_count; i++)
		if (!stands(table->types, image, &table->guards.items[slot->guards + i], address))
			return false;
	return true;
}

bool variant_stands(const struct type_table *types, const struct image *image,
		    const struct type_variant *variant, uint64_t address)
{
	struct type_variant guard = *variant;

	guard.offset = -guard.offset;
	return stands(types, image, &guard, address);
}

/* ---- std::variant and std::optional */

/*
 * Structures of a union and a number, which says what stands in it: 1 if anything does, or the
 * number of the alternative; others are in a union of the same name within.
 */
static const struct counted {
	const char *name, *alternatives;
} counted[] = {
	{ "std::_Optional_payload_base<", NULL },
	{ "std::__1::__optional_destruct_base<", NULL },
	{ "std::__detail::__variant::_Variant_storage<",
	  "std::__detail::__variant::_Variadic_union<" },
	{ "std::__1::__variant_detail::__base<", "std::__1::__variant_detail::__union<" },
};

static bool begins_with(const char *name, const char *start)
{
	return name && strncmp(name, start, strlen(start)) == 0;
}

static const struct counted *find_counted(const struct data_type *type)
{
	for (size_t i = 0; i < COUNT_OF(counted); i++)
		if (begins_with(type->name, counted[i].name))
			return &counted[i];
	return NULL;
}

static struct error *add_alternatives(const struct making *making, const struct counted *kind,
				      const struct part *whole, struct type_variant when)
{
	const struct type_table *types = making->table->types;
	const struct data_type *type = type_get(types, whole->type);
	const struct type_member *members = type_members(types, type);
	const struct guarded guarded = { whole->guarded, when };

	if (whole->depth >= DEEPEST)
		return NULL;
	for (uint32_t i = 0; i < type->member_count; i++) {
		struct part part = *whole;

		part.type = members[i].type;
		part.offset += members[i].offset;
		part.depth++;
		if (kind->alternatives &&
		    begins_with(type_get(types, part.type)->name, kind->alternatives)) {
			struct type_variant next = when;

			next.value++;
			TRY(add_alternatives(making, kind, &part, next));
			continue;
		}
		part.guarded = &guarded;
		TRY(add_slots(making, part));
	}
	return NULL;
}

static struct error *add_counted(const struct making *making, const struct counted *kind,
				 const struct data_type *type, const struct part *whole)
{
	const struct type_table *types = making->table->types;
	const struct type_member *members = type_members(types, type);
	struct type_variant when = { .value = !kind->alternatives };
	struct part part = *whole;

	for (uint32_t i = 0; i < type->member_count; i++) {
		const struct data_type *member = type_get(types, members[i].type);

		if ((member->kind == TYPE_NUMBER || member->kind == TYPE_CHARACTER) &&
		    member->size <= sizeof(when.value)) {
			when.offset = (uint32_t)whole->offset + members[i].offset;
			when.size = (uint8_t)member->size;
		} else if (member->kind == TYPE_UNION) {
			part.type = members[i].type;
			part.offset = whole->offset + members[i].offset;
			part.member = type->first_member + i;
			part.way = way_to(whole->way, part.member);
		}
	}
	part.depth++;
	return when.size && part.type != whole->type ? add_alternatives(making, kind, &part, when)
						     : NULL;
}

/* ---- BTreeMap and BTreeSet of Rust */

/*
 * Nodes of a tree: keys, values and, of inner ones, edges, as many as "len" says; what stands
 * behind these was removed, or never there. The first member of an inner node is a leaf.
 */
static const char leaf_node[] = "alloc::collections::btree::node::LeafNode<";
static const char internal_node[] = "alloc::collections::btree::node::InternalNode<";

static const struct type_member *find_member(const struct type_table *types,
					     const struct data_type *type, const char *name)
{
	const struct type_member *members = type_members(types, type);

	for (uint32_t i = 0; i < type->member_count; i++)
		if (members[i].name && strcmp(members[i].name, name) == 0)
			return &members[i];
	return NULL;
}

/* The type inside MaybeUninit; else the type itself. */
static type_number initialised(const struct type_table *types, type_number number)
{
	const struct data_type *type = type_get(types, number);
	const struct type_member *value =
		type->kind == TYPE_UNION ? find_member(types, type, "value") : NULL;

	return value ? value->type : number;
}

/* The elements of an array, each if the number says that there are more than before it. */
static struct error *add_counted_elements(const struct making *making, const struct part *array,
					  struct type_variant when)
{
	const struct type_table *types = making->table->types;
	const struct data_type *type = type_get(types, array->type);
	struct part part = *array;
	struct guarded guarded = { array->guarded, when };

	if (type->kind != TYPE_ARRAY)
		return add_slots(making, part);
	part.type = initialised(types, type->target);
	part.guarded = &guarded;
	part.depth++;
	for (uint64_t i = 0; i < type->count; i++, guarded.when.value++) {
		size_t before = making->table->slots.count;

		TRY(add_slots(making, part));
		if (making->table->slots.count == before)
			break;
		part.offset += type_get(types, type->target)->size;
	}
	return NULL;
}

/* Find the length of a tree's node; false: the type is none. */
static bool find_counted_node(const struct type_table *types, const struct data_type *type,
			      struct type_variant *ret)
{
	const struct data_type *leaf = type;
	const struct type_member *length;

	if (begins_with(type->name, internal_node) && type->member_count)
		leaf = type_get(types, type_members(types, type)->type);
	length = begins_with(leaf->name, leaf_node) ? find_member(types, leaf, "len") : NULL;
	if (!length)
		return false;
	*ret = (struct type_variant){
		/* There is one edge more. */
		.value = leaf == type,
		.offset = length->offset,
		.size = (uint8_t)type_get(types, length->type)->size,
		.or_more = true,
	};
	return ret->size && ret->size <= sizeof(ret->value);
}

static struct error *add_node(const struct making *making, const struct data_type *type,
			      const struct part *whole, struct type_variant when)
{
	const struct type_member *members = type_members(making->table->types, type);

	when.offset += (uint32_t)whole->offset;
	for (uint32_t i = 0; i < type->member_count; i++) {
		struct part part = *whole;

		part.type = members[i].type;
		part.offset += members[i].offset;
		part.member = type->first_member + i;
		part.way = way_to(whole->way, part.member);
		part.depth++;
		TRY(add_counted_elements(making, &part, when));
	}
	return NULL;
}

/* True if all members of a union are pointers, or arrays of as many. */
static bool is_of_pointers(const struct type_table *types, const struct data_type *type)
{
	const struct type_member *members = type_members(types, type);

	for (size_t i = 0; i < type->member_count; i++) {
		const struct data_type *member = type_get(types, members[i].type);

		if (member->size != type->size)
			return false;
		if (member->kind == TYPE_ARRAY)
			member = type_get(types, member->target);
		if (member->kind != TYPE_POINTER)
			return false;
	}
	return type->kind == TYPE_UNION;
}

static struct error *add_members(const struct making *making, const struct data_type *type,
				 const struct part *whole)
{
	const struct type_table *types = making->table->types;
	const struct type_member *members = type_members(types, type);
	uint32_t tag = tag_of(types, type);
	uint32_t kind =
		whole->is_choice ? operations_of(types, type) : kind_pointer_of(types, whole->type);
	bool is_choice = type->kind == TYPE_UNION && type->member_count > 1;
	bool is_pointer = !whole->is_choice && is_of_pointers(types, type);
	struct error *error = NULL;

	/* A number in one alternative does not say which one stands there; one outside may. */
	if (whole->is_choice && whole->tag != NO_TAG)
		tag = NO_TAG;
	for (uint32_t i = 0; !error && i < type->member_count; i++) {
		const struct type_variant *variant = type_variant(types, &members[i]);
		struct guarded guarded = { whole->guarded };
		struct part part = {
			.type = members[i].type,
			.offset = whole->offset + members[i].offset,
			.member = whole->is_choice ? whole->member : type->first_member + i,
			.way = whole->is_choice ? whole->way
						: way_to(whole->way, type->first_member + i),
			.tag = tag == NO_TAG ? whole->tag : (uint32_t)(whole->offset + tag),
			.next_tag = tag == NO_TAG ? whole->next_tag
						  : (uint32_t)(whole->offset +
							       next_tag_of(types, type, tag)),
			.kind = kind == NO_TAG ? whole->kind : (uint32_t)(whole->offset + kind),
			.choice_start =
				whole->is_choice
					? whole->choice_start
					: whole->offset + (is_choice ? 0 : members[i].offset),
			.is_choice = whole->is_choice || is_choice ||
				     (members[i].is_variant && !variant),
			.is_pointer = is_pointer,
			.guarded = variant ? &guarded : whole->guarded,
			.depth = whole->depth + 1,
		};

		if (variant) {
			guarded.when = *variant;
			guarded.when.offset += (uint32_t)whole->offset;
		}

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

type_number slots_find_kept(const struct type_table *types, const struct data_type *type,
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

/* Types in which std::function and std::any keep small values: see erased.c. */
static bool is_storage(const struct data_type *type)
{
	static const char *const names[] = { "std::_Any_data", "std::any::_Storage",
					     "std::__1::any::_Storage",
					     "std::__1::aligned_storage<" };

	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (begins_with(type->name, names[i]))
			return true;
	return false;
}

/* Anything may stand in each of its words. */
static struct error *add_storage(const struct making *making, const struct data_type *type,
				 const struct part *whole)
{
	struct part part = *whole;

	part.is_choice = true;
	part.choice_start = whole->is_choice ? whole->choice_start : whole->offset;
	for (uint64_t offset = 0; offset < type->size; offset += making->table->word) {
		part.offset = whole->offset + offset;
		TRY(add_pointer(making, NO_TYPE, &part));
	}
	return NULL;
}

/* Add the slots of a structure, or of the value in its bytes. */
static struct error *add_structure(const struct making *making, const struct data_type *type,
				   const struct part *whole)
{
	bool points = false;
	const struct counted *kind = find_counted(type);
	type_number kept = slots_find_kept(making->table->types, type, &points);
	struct type_variant length;
	struct part part = *whole;

	if (find_counted_node(making->table->types, type, &length))
		return add_node(making, type, whole, length);
	if (kept == NO_TYPE)
		return kind ? add_counted(making, kind, type, whole)
			    : add_members(making, type, whole);
	if (points)
		return add_pointer(making, kept, whole);
	if (type_get(making->table->types, kept)->size > type->size)
		return NULL;
	part.type = kept;
	part.depth++;
	return add_slots(making, part);
}

/* In what may be there or not, each element has guards of its own. */
static struct error *add_guarded_elements(const struct making *making, const struct data_type *type,
					  const struct part *whole)
{
	uint64_t size = type_get(making->table->types, type->target)->size;
	struct part part = *whole;

	part.type = type->target;
	part.depth++;
	for (uint64_t i = 0; i == 0 || (size && i < type->count); i++, part.offset += size) {
		size_t before = making->table->slots.count;

		TRY(add_slots(making, part));
		if (making->table->slots.count == before ||
		    before - making->first >= MOST_OF_A_TYPE)
			break;
	}
	return NULL;
}

/* Add the slots of the first element, repeated for each. */
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
			if (slot.tag != NO_TAG && slot.tag != whole->tag) {
				slot.tag += (uint32_t)(i * element->size);
				slot.next_tag += (uint32_t)(i * element->size);
			}
			if (slot.kind != NO_TAG && slot.kind != whole->kind)
				slot.kind += (uint32_t)(i * element->size);
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
	case TYPE_UNION:
		return is_storage(type)		      ? add_storage(making, type, &part)
		       : type->kind == TYPE_STRUCTURE ? add_structure(making, type, &part)
						      : add_members(making, type, &part);
	case TYPE_ARRAY:
		return part.guarded ? add_guarded_elements(making, type, &part)
				    : add_elements(making, type, &part);
	default:
		return NULL;
	}
}

DEFINE_COMPARE(compare_slots, struct slot, ASCENDING(offset), ASCENDING(target))

/* Alternatives of a union share the place of the pointer that says which of them stands there. */
static void share_kinds(struct slot *slots, size_t count)
{
	for (size_t i = 0, next; i < count; i = next) {
		uint32_t kind = NO_TAG;

		for (next = i; next < count && slots[next].offset == slots[i].offset; next++)
			if (slots[next].is_choice && kind == NO_TAG)
				kind = slots[next].kind;
		for (size_t j = i; j < next; j++)
			if (slots[j].is_choice && slots[j].kind == NO_TAG)
				slots[j].kind = kind;
	}
}

struct error *slots_find(struct slot_table *table, type_number type)
{
	struct slot_range *range = &table->ranges.items[type];
	const struct making making = { table, table->slots.count };
	struct error *error = NULL;

	*range = (struct slot_range){ (uint32_t)making.first, 0 };
	if (making.first < MOST_SLOTS)
		error = add_slots(&making, (struct part){ .type = type,
							  .member = NO_MEMBER,
							  .tag = NO_TAG,
							  .next_tag = NO_TAG,
							  .kind = NO_TAG });
	range->count = (uint32_t)(table->slots.count - making.first);
	if (range->count) {
		SORT(&table->slots.items[range->first], range->count, compare_slots);
		share_kinds(&table->slots.items[range->first], range->count);
	}
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
	*ret = words * table->word >= type_get(table->types, type)->size;
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
