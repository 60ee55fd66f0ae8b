#include "analyzer/types/typing_parts.h"

#include "analyzer/base/bytes.h"
#include "analyzer/program/debug/variables.h"

#include <string.h>

enum {
	MOST_ORIGINS = 1 << 24,
	MOST_PLACES = 1 << 20, /* with a type, that are no allocations */
	MOST_CONTEXTS = 1 << 20,
	DEEPEST_CONTEXT = 8,
	SAMPLE = 16, /* elements of an array */
	FIRST_ELEMENTS = 4,
	MOST_OF_TAIL = 6,
	LONGEST_HEADER = 17, /* of a string: sds has the longest */
	SAMPLED_WORDS = 32,
	SAMPLED_TEXT = 16,	 /* bytes */
	MOST_COMPARED = 1 << 15, /* bytes of a value */
	MOST_TAILS = 4,		 /* structures that end each other */
};

static allocation_id find_used(const struct typing *typing, uint64_t address)
{
	allocation_id id = allocation_find(typing->input.index, address);

	return id != NO_ALLOCATION && allocation_state(typing->input.index, id) == BLOCK_USED
		       ? id
		       : NO_ALLOCATION;
}

/* Whether a word of the range, of which the first are read, refers to the heap. */
static bool refers_to_heap(const struct typing *typing, struct memory_range range)
{
	uint64_t word;

	for (uint64_t i = 0; i < SAMPLED_WORDS && (i + 1) * sizeof(word) <= range.end - range.start;
	     i++)
		if (image_read_u64(typing->input.image, range.start + i * sizeof(word), &word) &&
		    find_used(typing, word) != NO_ALLOCATION)
			return true;
	return false;
}

static bool is_same_member(const struct type_member *member, const struct type_member *other)
{
	return member->offset == other->offset && member->type == other->type && member->name &&
	       other->name && strcmp(member->name, other->name) == 0;
}

/* Whether the type has all members of the header in front of its own, or it is its first one. */
static bool has_members_of(const struct typing *typing, const struct data_type *type,
			   type_number header)
{
	const struct data_type *described = typing_type(typing, header);
	const struct type_member *members = type_members(typing->table, type);
	const struct type_member *wanted = type_members(typing->table, described);

	if (type->kind != TYPE_STRUCTURE || described->kind != TYPE_STRUCTURE ||
	    type->size <= described->size || type->member_count == 0)
		return false;
	if (members->offset == 0 && members->type == header)
		return true;
	if (described->member_count < 2 || type->member_count < described->member_count)
		return false;
	for (size_t i = 0; i < described->member_count; i++)
		if (!is_same_member(&members[i], &wanted[i]))
			return false;
	return true;
}

/* Whether text stands at that address: printable bytes up to a zero, or of some length. */
static bool is_text(const struct typing *typing, uint64_t address)
{
	char bytes[SAMPLED_TEXT];
	size_t i = 0;

	if (!image_read(typing->input.image, address, bytes, sizeof(bytes)))
		return false;
	while (i < sizeof(bytes) && (unsigned char)bytes[i] >= ' ' && bytes[i] != 0x7f)
		i++;
	return i == sizeof(bytes) || (i > 0 && bytes[i] == '\0');
}

bool type_begins_with(const struct typing *typing, type_number number, type_number header)
{
	for (size_t i = 0; i < MOST_TAILS; i++) {
		const struct data_type *type = typing_type(typing, number);
		const struct type_member *members = type_members(typing->table, type);

		if (has_members_of(typing, type, header))
			return true;
		if (type->kind != TYPE_STRUCTURE || type->member_count == 0 || members->offset != 0)
			return false;
		number = members->type;
	}
	return false;
}

/*
 * Whether what is known of an allocation speaks against a pointer to the start of it: it is
 * another type, of which neither begins with the other.
 */
static bool is_known_otherwise(const struct typing *typing, allocation_id id, type_number number)
{
	type_number known = known_type(typing, id);

	return known_fit(typing, id) >= FIT_TAIL && known != number &&
	       !type_begins_with(typing, known, number) && !type_begins_with(typing, number, known);
}

/* Whether nothing is left of the range but what malloc rounds, or the smallest chunk has. */
bool is_just_as_large(struct memory_range range, uint64_t size)
{
	uint64_t available = range.end - range.start;

	return available - size < 2 * sizeof(uint64_t) || available <= 3 * sizeof(uint64_t);
}

/* Whether a pointer may lead from a slot to that address, where something is mapped. */
static bool leads_right(const struct typing *typing, const struct slot *slot, uint64_t address,
			struct conformity *conformity)
{
	const struct data_type *target = typing_type(typing, slot->target);
	const struct region *region = image_find(typing->input.image, address);
	allocation_id id = find_used(typing, address);
	struct memory_range range;

	/* In place of "void *" numbers may stand. */
	if (target->kind == TYPE_NONE)
		conformity->confirmed += id != NO_ALLOCATION;
	if (target->kind == TYPE_NONE)
		return true;
	if (!region)
		return false;
	if (target->kind == TYPE_FUNCTION) {
		conformity->confirmed++;
		return region->rights & RIGHT_EXECUTE;
	}
	if (!is_aggregate(target)) {
		conformity->confirmed += target->kind == TYPE_CHARACTER && is_text(typing, address);
		return true;
	}
	if ((region->rights & RIGHT_EXECUTE) || address % sizeof(uint32_t) != 0)
		return false;
	conformity->confirmed++;
	conformity->exact += id == NO_ALLOCATION;
	if (id == NO_ALLOCATION)
		return true;
	range = range_of(typing, id);
	if (address == range.start) {
		bool is_exact = known_type(typing, id) == slot->target ||
				(target->size <= range.end - range.start &&
				 is_just_as_large(range, target->size));

		conformity->exact += is_exact;
		conformity->doubtful += !is_exact;
		if (is_known_otherwise(typing, id, slot->target))
			return false;
	}
	/* The end of an array, too, may be pointed to. */
	return target->size <= range.end - address || (target->size && address > range.start &&
						       (address - range.start) % target->size == 0);
}

/*
 * Pointers are null, or lead to something that has room for what they point to; what are no
 * pointers do not refer to the heap.
 */
struct error *typing_conforms(struct typing *typing, uint64_t address, type_number number,
			      struct conformity *ret)
{
	const struct data_type *type = typing_type(typing, number);
	const struct slot *slots;
	size_t count, next = 0;
	struct error *error = slots_of(&typing->slots, number, &slots, &count);

	*ret = (struct conformity){ .is_violated = true };
	if (error)
		return error;
	for (uint64_t offset = 0; offset + sizeof(uint64_t) <= type->size && offset < MOST_COMPARED;
	     offset += sizeof(uint64_t)) {
		uint64_t word;

		while (next < count && slots[next].offset < offset)
			next++;
		if (!image_read_u64(typing->input.image, address + offset, &word))
			return NULL;
		if (next == count || slots[next].offset != offset) {
			if (find_used(typing, word) != NO_ALLOCATION)
				return NULL;
			continue;
		}
		if (slots[next].is_choice)
			ret->confirmed += find_used(typing, word) != NO_ALLOCATION;
		else if (word != 0 && !leads_right(typing, &slots[next], word, ret))
			return NULL;
	}
	ret->is_violated = false;
	return NULL;
}

/* Whether the structure refers to others of its own: such are not kept in arrays. */
static struct error *refers_to_itself(struct typing *typing, type_number number, bool *ret)
{
	const struct slot *slots;
	size_t count;
	struct error *error = slots_of(&typing->slots, number, &slots, &count);

	*ret = false;
	for (size_t i = 0; !error && i < count; i++)
		*ret |= slots[i].target == number;
	return error;
}

/* Whether elements are there that look like it; the rest may never have been written. */
static struct error *begins_as_array(struct typing *typing, uint64_t address, type_number number,
				     bool *ret)
{
	*ret = true;
	for (uint64_t i = 0; *ret && i < FIRST_ELEMENTS; i++) {
		struct conformity conformity;

		TRY(typing_conforms(typing, address + i * typing_type(typing, number)->size, number,
				    &conformity));
		*ret = !conformity.is_violated && conformity.confirmed > 0;
	}
	return NULL;
}

static struct error *fits_as_array(struct typing *typing, struct memory_range range,
				   type_number number, bool *ret)
{
	const struct data_type *type = typing_type(typing, number);
	uint64_t count = (range.end - range.start) / type->size, between;
	struct error *error = NULL;

	*ret = false;
	if (!is_aggregate(type) && type->kind != TYPE_POINTER) {
		*ret = !refers_to_heap(typing, range);
		return NULL;
	}
	if (count < 2 && type->kind != TYPE_POINTER)
		return NULL;
	if (!allocation_fits(typing->input.index, range, count * type->size, false))
		return NULL;
	if (is_aggregate(type)) {
		error = refers_to_itself(typing, number, ret);
		if (error || *ret) {
			*ret = false;
			return error;
		}
	}
	between = count > SAMPLE ? count / SAMPLE : 1;
	*ret = true;
	for (uint64_t i = 0; !error && *ret && i < count; i += between) {
		struct conformity conformity;

		error = typing_conforms(typing, range.start + i * type->size, number, &conformity);
		*ret = !conformity.is_violated;
	}
	if (!error && !*ret && count >= 2 * FIRST_ELEMENTS)
		error = begins_as_array(typing, range.start, number, ret);
	return error;
}

/* The last member if it may be of any size: where it begins, and the type of its elements. */
bool type_find_tail(const struct typing *typing, type_number number, uint64_t *ret_offset,
		    type_number *ret_element)
{
	*ret_offset = 0;
	for (size_t i = 0; i < MOST_TAILS; i++) {
		const struct data_type *type = typing_type(typing, number), *last;
		const struct type_member *member;

		if (type->kind != TYPE_STRUCTURE || type->member_count == 0)
			return false;
		member = &type_members(typing->table, type)[type->member_count - 1];
		last = typing_type(typing, member->type);
		*ret_offset += member->offset;
		*ret_element = last->target;
		if (last->kind == TYPE_ARRAY)
			return last->count <= 1;
		number = member->type;
	}
	return false;
}

struct error *typing_conforms_behind(struct typing *typing, struct memory_range range,
				     type_number number, struct conformity *ret)
{
	const struct data_type *element;
	type_number element_number;
	uint64_t offset;

	*ret = (struct conformity){ .is_violated = false };
	if (!type_find_tail(typing, number, &offset, &element_number) ||
	    offset >= range.end - range.start)
		return NULL;
	ret->has_tail = true;
	range.start += offset;
	element = typing_type(typing, element_number);
	if (element->kind == TYPE_CHARACTER || element->kind == TYPE_NUMBER) {
		ret->confirmed = element->kind == TYPE_CHARACTER && is_text(typing, range.start);
		range.start += -range.start % sizeof(uint64_t);
		ret->is_violated =
			!ret->confirmed && range.start < range.end && refers_to_heap(typing, range);
		return NULL;
	}
	/* It may have room for more than there is; but the first is there. */
	for (uint64_t i = 0;
	     i < MOST_OF_TAIL && element->size && element->size <= range.end - range.start;
	     i++, range.start += element->size) {
		struct conformity one;

		TRY(typing_conforms(typing, range.start, element_number, &one));
		ret->is_violated |= i == 0 && one.is_violated;
		ret->confirmed += one.confirmed;
		ret->doubtful += one.is_violated;
	}
	return NULL;
}

enum type_fit typing_fit_of_one(const struct typing *typing, struct memory_range range,
				type_number number)
{
	const struct data_type *type = typing_type(typing, number);
	type_number element;
	uint64_t offset;

	if (!is_aggregate(type) || type->size == 0 || type->size > range.end - range.start)
		return FIT_NONE;
	if (allocation_fits(typing->input.index, range, type->size, true))
		return FIT_ONE;
	return type_find_tail(typing, number, &offset, &element) ? FIT_TAIL : FIT_NONE;
}

struct error *typing_find_fit(struct typing *typing, struct memory_range range, type_number number,
			      enum type_fit *ret)
{
	const struct data_type *type = typing_type(typing, number);
	struct error *error = NULL;
	bool is_array = false;
	type_number element;
	uint64_t offset;

	*ret = FIT_NONE;
	if (type->size == 0 || type->size > range.end - range.start)
		return NULL;
	if (is_aggregate(type) && allocation_fits(typing->input.index, range, type->size, true)) {
		*ret = FIT_ONE;
		/* malloc does not split off what is too small, but two may be meant as well. */
		if (!is_just_as_large(range, type->size) && type->size >= 2 * sizeof(uint64_t))
			error = fits_as_array(typing, range, number, &is_array);
		if (is_array)
			*ret = FIT_ARRAY;
	} else if (type_find_tail(typing, number, &offset, &element)) {
		*ret = FIT_TAIL;
	} else {
		struct conformity conformity = { .is_violated = true };

		error = fits_as_array(typing, range, number, &is_array);
		if (!error && !is_array && is_aggregate(type))
			error = typing_conforms(typing, range.start, number, &conformity);
		*ret = is_array ? FIT_ARRAY : conformity.is_violated ? FIT_NONE : FIT_PREFIX;
	}
	return error;
}

/* The context of what is one way on from another; NO_CONTEXT if there are too many. */
static uint32_t enter_context(struct typing *typing, uint32_t parent, uint64_t way, uint32_t place)
{
	uint32_t depth = typing->paths.items[parent].depth + 1, at = parent;
	const struct context *known;
	struct error *error;

	while (at != NO_CONTEXT && typing->paths.items[at].way != way)
		at = typing->paths.items[at].parent;
	if (at != NO_CONTEXT)
		return at;
	if (depth > DEEPEST_CONTEXT) {
		while (typing->paths.items[parent].depth > 1)
			parent = typing->paths.items[parent].parent;
		depth = 2;
	}
	known = table_find(&typing->paths, hash_add(way, parent), item,
			   item->way == way && item->parent == parent);
	if (known)
		return (uint32_t)(known - typing->paths.items);
	if (typing->paths.count >= MOST_CONTEXTS)
		return NO_CONTEXT;
	error = table_append(&typing->paths, hash_add(way, parent),
			     (struct context){ way, place, parent, depth });
	if (error) {
		error_destroy(error);
		return NO_CONTEXT;
	}
	return (uint32_t)(typing->paths.count - 1);
}

/* Elements of what a variable itself leads to are not told apart from it. */
static uint32_t enter_slot(struct typing *typing, uint32_t context, const struct slot *slot)
{
	struct context whole = typing->paths.items[context];

	if (slot->member != NO_MEMBER)
		return enter_context(typing, context, slot->way, slot->member);
	return whole.place == NO_MEMBER ? context
					: enter_context(typing, context, whole.way | OF_ELEMENT,
							ELEMENT_OF(whole.place));
}

/* A pointer in memory: where it stands, and what it is to point to. */
struct pointer {
	allocation_id from; /* or NO_ALLOCATION */
	uint64_t offset;    /* in it */
	uint64_t address, value;
	type_number target;
	uint32_t context; /* of what it leads to */
	type_number type; /* of the value that it is a part of, or NO_TYPE; and where in it */
	uint32_t part;
	bool is_choice;
};

static struct error *keep_step(struct typing *typing, allocation_id id,
			       const struct pointer *pointer)
{
	struct kept_step step = { pointer->from + FROM_ALLOCATION,
				  (uint32_t)(pointer->offset / sizeof(uint64_t)) };
	struct error *error = NULL;

	if (pointer->from == NO_ALLOCATION) {
		if (typing->origins.count >= MOST_ORIGINS)
			return NULL;
		step = (struct kept_step){ FROM_ORIGIN, (uint32_t)typing->origins.count };
		error = array_append(
			&typing->origins,
			(struct origin){ pointer->address, pointer->type, pointer->part });
	}
	if (!error) {
		typing->steps.items[id] = step;
		typing->contexts.items[id] = pointer->context;
	}
	return error;
}

/* Memory that is no allocation, and that a pointer with a type leads to, is of that type. */
static struct error *add_place(struct typing *typing, const struct pointer *pointer,
			       allocation_id in)
{
	uint64_t hash = hash_add(hash_add(0, pointer->value), pointer->target);
	struct error *error;

	if (pointer->value % sizeof(uint64_t) != 0 ||
	    !is_aggregate(typing_type(typing, pointer->target)) ||
	    typing->places.count >= MOST_PLACES ||
	    !image_find(typing->input.image, pointer->value) ||
	    address_map_find(&typing->known, hash) != NOT_IN_MAP)
		return NULL;
	error = address_map_add(&typing->known, hash, 0);
	return error ? error
		     : array_append(&typing->places,
				    (struct place){ pointer->value, pointer->target, in,
						    pointer->context });
}

static void keep_type(struct typing *typing, allocation_id id, type_number number,
		      enum type_fit fit, bool is_inferred)
{
	typing->count += typing->types.items[id] == 0;
	typing->types.items[id] =
		number << TYPE_SHIFT | (is_inferred ? IS_INFERRED : 0) | (uint32_t)fit;
}

struct error *typing_set(struct typing *typing, allocation_id id, type_number number,
			 enum type_fit fit, bool is_inferred)
{
	keep_type(typing, id, number, fit, is_inferred);
	return array_append(&typing->queue, id);
}

/*
 * A structure somewhere in a block that has no type of its own, as pools have them, if what stands
 * there looks like it.
 */
static struct error *follow_into(struct typing *typing, const struct pointer *pointer,
				 allocation_id id)
{
	const struct data_type *target = typing_type(typing, pointer->target);
	struct conformity conformity;
	struct error *error;

	if (pointer->is_choice || !is_aggregate(target) || target->size < sizeof(uint64_t) ||
	    known_fit(typing, id) > FIT_REGION || pointer->value % sizeof(uint64_t) != 0 ||
	    target->size > range_of(typing, id).end - pointer->value)
		return NULL;
	error = typing_conforms(typing, pointer->value, pointer->target, &conformity);
	if (error || conformity.is_violated || conformity.confirmed == 0)
		return error;
	if (known_fit(typing, id) == FIT_NONE)
		keep_type(typing, id, pointer->target, FIT_REGION, false);
	return add_place(typing, pointer, id);
}

/* Whether the pointer is a "void *" to text that stands behind a header of its own, as sds's does.
 */
static bool is_behind_header(const struct typing *typing, const struct pointer *pointer,
			     struct memory_range range)
{
	return typing->character && pointer->target == NO_TYPE && pointer->value > range.start &&
	       pointer->value - range.start <= LONGEST_HEADER && is_text(typing, pointer->value);
}

/*
 * What a pointer leads to is of the type that it points to, if that fits better than what is known
 * of it.
 */
static struct error *follow(struct typing *typing, const struct pointer *pointer)
{
	allocation_id id = find_used(typing, pointer->value);
	const struct data_type *target = typing_type(typing, pointer->target);
	struct error *error = NULL;
	struct memory_range range;
	type_number wanted = pointer->target;
	bool is_first;
	enum type_fit fit, known;

	if (id == NO_ALLOCATION)
		return allocation_find(typing->input.index, pointer->value) != NO_ALLOCATION ||
				       pointer->is_choice
			       ? NULL
			       : add_place(typing, pointer, NO_ALLOCATION);
	range = range_of(typing, id);
	if (is_behind_header(typing, pointer, range))
		target = typing_type(typing, wanted = typing->character);
	if (pointer->value - range.start > (target->kind == TYPE_CHARACTER ? LONGEST_HEADER : 0))
		return follow_into(typing, pointer, id);
	known = known_fit(typing, id);
	is_first = !has_step(typing, id);
	if (is_first)
		error = keep_step(typing, id, pointer);
	/* Which member of a union is meant is not known here: see infer.c. */
	if (error || pointer->is_choice || target->kind == TYPE_NONE ||
	    target->kind == TYPE_FUNCTION || known_type(typing, id) == wanted)
		return error;
	/* What was but a header of it may be known better. */
	if (known == FIT_ONE && type_begins_with(typing, wanted, known_type(typing, id)))
		known = FIT_PREFIX;
	if (known == FIT_ONE)
		return NULL;
	error = typing_find_fit(typing, range, wanted, &fit);
	if (error || fit <= known)
		return error;
	/* A pointer to what was freed may lead to a text, which is where the block is now. */
	if (is_aggregate(target) && is_text(typing, range.start)) {
		struct conformity conformity;

		TRY(typing_conforms(typing, range.start, wanted, &conformity));
		if (conformity.is_violated)
			return NULL;
	}
	if (!is_first)
		error = keep_step(typing, id, pointer);
	return error ? error : typing_set(typing, id, wanted, fit, false);
}

/* What has a type, and whose pointers are to be followed: count values. */
struct source {
	allocation_id from; /* or NO_ALLOCATION */
	uint64_t start;	    /* of that; or of the value */
	uint64_t address, end;
	type_number type;
	uint64_t count;
	uint32_t context;
	bool is_array; /* of which some may never have been written */
};

static struct error *follow_all(struct typing *typing, const struct source *source)
{
	uint64_t size = typing_type(typing, source->type)->size;
	struct error *error = NULL;

	for (uint64_t i = 0; !error && i < source->count; i++) {
		const struct slot *slots;
		size_t count;

		if (source->is_array) {
			struct conformity conformity;

			TRY(typing_conforms(typing, source->address + i * size, source->type,
					    &conformity));
			if (conformity.is_violated)
				continue;
		}
		/* What is followed may move the slots. */
		error = slots_of(&typing->slots, source->type, &slots, &count);
		for (size_t j = 0; !error && j < count; j++) {
			uint64_t address = source->address + i * size + slots[j].offset;
			struct pointer pointer = {
				.from = source->from,
				.offset = address - source->start,
				.address = address,
				.target = slots[j].target,
				.type = source->type,
				.part = slots[j].offset,
				.is_choice = slots[j].is_choice,
			};

			if (address >= source->end ||
			    !image_read_u64(typing->input.image, address, &pointer.value) ||
			    pointer.value == 0)
				continue;
			/* Lists and trees are of one context. */
			pointer.context = slots[j].target == source->type
						  ? source->context
						  : enter_slot(typing, source->context, &slots[j]);
			error = follow(typing, &pointer);
			if (!error)
				error = slots_of(&typing->slots, source->type, &slots, &count);
		}
		if (count == 0)
			break;
	}
	return error;
}

/* What stands behind a structure, whose last member is an array of any size. */
static struct error *follow_tail(struct typing *typing, const struct source *whole)
{
	struct source source = *whole;
	uint64_t offset, size;

	if (whole->is_array || !type_find_tail(typing, whole->type, &offset, &source.type))
		return NULL;
	size = typing_type(typing, source.type)->size;
	if (size == 0 || offset >= whole->end - whole->address)
		return NULL;
	source.address += offset;
	source.count = (source.end - source.address) / size;
	source.is_array = is_aggregate(typing_type(typing, source.type));
	return follow_all(typing, &source);
}

static struct error *follow_allocation(struct typing *typing, allocation_id id)
{
	struct memory_range range = range_of(typing, id);
	type_number number = known_type(typing, id);
	struct source source = {
		.from = id,
		.start = range.start,
		.address = range.start,
		.end = range.end,
		.type = number,
		.count = 1,
		.context = typing->contexts.items[id],
	};

	if (known_fit(typing, id) == FIT_ARRAY) {
		source.count = (range.end - range.start) / typing_type(typing, number)->size;
		source.is_array = is_aggregate(typing_type(typing, number));
	}
	TRY(follow_all(typing, &source));
	return follow_tail(typing, &source);
}

static struct error *follow_place(struct typing *typing, const struct place *place)
{
	struct source source = {
		.from = place->in,
		.start = place->address,
		.address = place->address,
		.end = UINT64_MAX,
		.type = place->type,
		.count = 1,
		.context = place->context,
	};

	if (place->in != NO_ALLOCATION)
		source.start = allocation_start(typing->input.index, place->in);
	return follow_all(typing, &source);
}

struct error *typing_follow_queue(struct typing *typing)
{
	struct error *error = NULL;
	uint64_t told = 0, done = 0;

	while (!error && (typing->queued_from < typing->queue.count || typing->places.count)) {
		if (!progress_pass(typing->input.progress, ++done, &told))
			return error_create(ERROR_INTERRUPTED, "interrupted");
		if (typing->queued_from < typing->queue.count) {
			error = follow_allocation(typing,
						  typing->queue.items[typing->queued_from++]);
		} else {
			struct place place = typing->places.items[--typing->places.count];

			error = follow_place(typing, &place);
		}
		/* What was worked off goes when it is the larger part. */
		if (typing->queued_from > 4096 && typing->queued_from > typing->queue.count / 2) {
			typing->queue.count -= typing->queued_from;
			memmove(typing->queue.items, typing->queue.items + typing->queued_from,
				typing->queue.count * sizeof(*typing->queue.items));
			typing->queued_from = 0;
		}
	}
	return error;
}

struct visit {
	struct typing *typing;
	struct error *error;
};

static bool follow_variable(void *data, const struct typed_variable *variable)
{
	struct visit *visit = data;
	const struct data_type *type = typing_type(visit->typing, variable->type);
	uint32_t context = enter_context(visit->typing, NO_CONTEXT, OF_VARIABLE | variable->address,
					 NO_MEMBER);

	if (!variable->is_in_register) {
		const struct source source = {
			.from = NO_ALLOCATION,
			.start = variable->address,
			.address = variable->address,
			.end = variable->size > UINT64_MAX - variable->address
				       ? UINT64_MAX
				       : variable->address + variable->size,
			.type = variable->type,
			.count = 1,
			.context = context,
		};

		visit->error = follow_all(visit->typing, &source);
	} else if (type->kind == TYPE_POINTER) {
		const struct pointer pointer = {
			.from = NO_ALLOCATION,
			.address = variable->address,
			.value = variable->value,
			.target = type->target,
			.context = context,
		};

		visit->error = follow(visit->typing, &pointer);
	}
	return !visit->error;
}

struct error *typing_follow_variables(struct typing *typing)
{
	struct visit visit = { typing, NULL };

	debug_visit_variables(typing->input.debug, typing->table, follow_variable, &visit);
	return visit.error;
}
