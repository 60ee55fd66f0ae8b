#include "analyzer/types/inference.h"

enum { MOST_HEADERS = 1 << 10 };

const struct slot *inference_slot_to(struct typing *typing, allocation_id id, uint64_t *ret_address,
				     type_number *ret_type)
{
	struct kept_step step = typing_step(typing, id);
	const struct origin *in_region;
	const struct data_type *type;
	allocation_id from;
	uint64_t offset;

	if (step.from == FROM_ORIGIN) {
		const struct origin *origin = &typing->origins.items[step.offset];

		*ret_address = origin->address;
		*ret_type = origin->type;
		return slot_at(&typing->slots, origin->type, origin->offset);
	}
	from = step.from - FROM_ALLOCATION;
	offset = (uint64_t)step.offset * typing->word;
	*ret_address = allocation_start(typing->input.index, from) + offset;
	in_region = table_find(&typing->region_slots, *ret_address, item,
			       item->address == *ret_address);
	if (in_region) {
		*ret_type = in_region->type;
		return slot_at(&typing->slots, in_region->type, in_region->offset);
	}
	*ret_type = known_type(typing, from);
	type = typing_type(typing, *ret_type);
	if (known_fit(typing, from) <= FIT_REGION || type->size == 0)
		return NULL;
	if (offset >= type->size && known_fit(typing, from) != FIT_ARRAY) {
		type_number whole = *ret_type;
		uint64_t tail;

		if (!type_find_tail(typing, whole, &tail, ret_type) || offset < tail ||
		    typing_type(typing, *ret_type)->size == 0)
			return NULL;
		return slot_at(&typing->slots, *ret_type,
			       (offset - tail) % typing_type(typing, *ret_type)->size);
	}
	return slot_at(&typing->slots, *ret_type,
		       known_fit(typing, from) == FIT_ARRAY ? offset % type->size : offset);
}

/* True if it is a pointer whose arrays can be recognised by their targets. */
static bool is_telling_pointer(const struct typing *typing, const struct data_type *type)
{
	const struct data_type *target = typing_type(typing, type->target);

	return type->kind == TYPE_POINTER &&
	       (target->kind == TYPE_CHARACTER || (is_aggregate(target) && target->size));
}

struct error *inference_add_candidate(struct inference *inference, type_number type, bool is_choice)
{
	const struct data_type *described = typing_type(inference->typing, type);
	bool is_rivalled = false;

	if (is_choice && inference->candidates.count < MOST_CANDIDATES &&
	    (described->kind == TYPE_CHARACTER ||
	     is_telling_pointer(inference->typing, described))) {
		for (size_t i = 0; i < inference->candidates.count; i++)
			if (inference->candidates.items[i] == type)
				return NULL;
		return array_append(&inference->candidates, type);
	}
	if (!is_aggregate(described) || inference->candidates.count == MOST_CANDIDATES)
		return NULL;
	/* Memory cannot tell it from the array that another member of the union leads to. */
	if (inference->has_pointers)
		TRY(slots_are_all(&inference->typing->slots, type, &is_rivalled));
	if (is_rivalled)
		return array_append(&inference->rivals, type);
	for (size_t i = 0; i < inference->candidates.count; i++)
		if (inference->candidates.items[i] == type)
			return NULL;
	return array_append(&inference->candidates, type);
}

struct error *inference_find_heirs(struct inference *inference, type_number header, size_t *ret)
{
	const struct typing *typing = inference->typing;
	uint32_t known = address_map_find(&inference->headers, header);
	struct error *error;

	*ret = known == NOT_IN_MAP ? inference->heirs.count : known;
	if (known != NOT_IN_MAP || inference->headers.count == MOST_HEADERS)
		return NULL;
	error = address_map_add(&inference->headers, header, (uint32_t)*ret);
	for (type_number i = 1; !error && i < type_count(typing->table); i++)
		if (type_begins_with(typing, i, header))
			error = array_append(&inference->heirs, (struct heir){ header, i });
	return error;
}

/*
 * The members of the union that the slot is in are candidates, or the one that the tag names. The
 * slot is of a value of the type, and its pointer stands at the address.
 */
static struct error *add_choices(struct inference *inference, const struct slot *slot,
				 type_number type, uint64_t address)
{
	struct typing *typing = inference->typing;
	const struct type_member *named;
	const struct slot *slots;
	size_t count;

	if (!slot || !slot->is_choice)
		return NULL;
	named = tag_names(typing, type, slot, address);
	if (named && typing_type(typing, named->type)->kind == TYPE_POINTER) {
		inference->is_named = true;
		return inference_add_candidate(inference, typing_type(typing, named->type)->target,
					       true);
	}
	TRY(slots_of(&typing->slots, type, &slots, &count));
	for (size_t i = 0; i < count; i++)
		if (slots[i].offset == slot->offset && slots[i].member == slot->member)
			inference->has_pointers |=
				typing_type(typing, slots[i].target)->kind == TYPE_POINTER;
	for (size_t i = 0; i < count; i++)
		if (slots[i].offset == slot->offset && slots[i].member == slot->member)
			TRY(inference_add_candidate(inference, slots[i].target, true));
	return NULL;
}

struct error *inference_add_heirs(struct inference *inference, type_number header)
{
	size_t i;

	TRY(inference_find_heirs(inference, header, &i));
	for (; i < inference->heirs.count && inference->heirs.items[i].header == header; i++)
		TRY(inference_add_candidate(inference, inference->heirs.items[i].type, false));
	return NULL;
}

struct error *inference_gather_for_slot(struct inference *inference, const struct slot *slot,
					type_number type, uint64_t address, uint32_t place)
{
	const struct cast *casts;
	size_t count;

	inference->candidates.count = inference->choice_count = inference->cast_count = 0;
	inference->has_pointers = inference->is_named = false;
	inference->rivals.count = 0;
	TRY(add_choices(inference, slot, type, address));
	inference->choice_count = inference->candidates.count;
	if (inference->is_named)
		return NULL;
	count = casts_of(&inference->casts, place, &casts);
	for (size_t i = 0; i < count; i++)
		TRY(inference_add_candidate(inference, casts[i].type, false));
	count = inference->cast_count = inference->candidates.count;
	for (size_t i = 0; i < count; i++)
		TRY(inference_add_heirs(inference, inference->candidates.items[i]));
	return NULL;
}

struct error *inference_gather_candidates(struct inference *inference, allocation_id id)
{
	struct typing *typing = inference->typing;
	uint32_t place = typing->paths.items[typing->contexts.items[id]].place;
	const struct slot *slot;
	uint64_t address = 0;
	type_number type = NO_TYPE;

	inference->candidates.count = inference->choice_count = inference->cast_count = 0;
	inference->has_pointers = false;
	if (known_fit(typing, id) != FIT_NONE)
		return inference_add_heirs(inference, known_type(typing, id));
	slot = inference_slot_to(typing, id, &address, &type);
	return inference_gather_for_slot(inference, slot, type, address, place);
}
