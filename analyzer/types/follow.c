#include "analyzer/types/inference.h"

#include "analyzer/base/bytes.h"

#include <string.h>

enum {
	MOST_ORIGINS = 1 << 24,
	MOST_PLACES = 1 << 20, /* with a type, that are no allocations */
	MOST_OPAQUE = 1 << 12,
	LONGEST_HEADER = 17, /* of a string: sds has the longest */
	MOST_STEPS_BACK = 64,
};

static struct origin origin_of(const struct pointer *pointer)
{
	return (struct origin){ .address = pointer->address,
				.type = pointer->type,
				.offset = pointer->part };
}

/* The step that the pointer is; no step if there are too many. */
static struct error *make_step(struct typing *typing, const struct pointer *pointer,
			       struct kept_step *ret)
{
	*ret = (struct kept_step){ pointer->from + FROM_ALLOCATION,
				   (uint32_t)(pointer->offset / typing->word) };
	if (pointer->from == NO_ALLOCATION) {
		*ret = (struct kept_step){ 0 };
		if (typing->origins.count >= MOST_ORIGINS)
			return NULL;
		*ret = (struct kept_step){ FROM_ORIGIN, (uint32_t)typing->origins.count };
		TRY(array_append(&typing->origins, origin_of(pointer)));
	}
	if (pointer->is_in_region && !table_find(&typing->region_slots, pointer->address, item,
						 item->address == pointer->address))
		return table_append(&typing->region_slots, pointer->address, origin_of(pointer));
	return NULL;
}

/*
 * True if the path back from that allocation avoids the other one, to which a new step is to lead
 * from it; false if it is far from an unknown variable.
 */
static bool is_apart(const struct typing *typing, allocation_id from, allocation_id id)
{
	for (size_t i = 0; i < MOST_STEPS_BACK && from != id; i++) {
		struct kept_step step = typing_step(typing, from);

		if (step.from < FROM_ALLOCATION)
			return true;
		from = step.from - FROM_ALLOCATION;
	}
	return false;
}

/* Steps never go round in a circle: then the one that is kept stays, which led to another type. */
static struct error *keep_step(struct typing *typing, allocation_id id,
			       const struct pointer *pointer)
{
	struct kept_step step, kept;

	TRY(make_step(typing, pointer, &step));
	if (step.from == 0)
		return NULL;
	typing->contexts.items[id] = pointer->context;
	if (has_step(typing, id)
		    ? pointer->from == NO_ALLOCATION || is_apart(typing, pointer->from, id)
		    : pointer->from != id)
		return typing_set_step(typing, id, step);
	kept = typing_step(typing, id);
	if (kept.from == FROM_ORIGIN)
		typing->origins.items[kept.offset].led_to_other = true;
	return NULL;
}

/* Memory that is no allocation, and that a pointer with a type leads to, is of that type. */
static struct error *add_place(struct typing *typing, const struct pointer *pointer,
			       allocation_id in)
{
	uint64_t hash = hash_add(hash_add(0, pointer->value), pointer->target);

	if (pointer->value % typing->word != 0 ||
	    !is_aggregate(typing_type(typing, pointer->target)) ||
	    !image_find(typing->input.image, pointer->value) ||
	    address_map_find(&typing->known, hash) != NOT_IN_MAP)
		return NULL;
	if (typing->places.count >= MOST_PLACES) {
		typing_reach_limit(typing, "more than 1,048,576 values wait to be followed");
		return NULL;
	}
	TRY(address_map_add(&typing->known, hash, 0));
	if (in != NO_ALLOCATION)
		TRY(typing_count_value(typing, in, pointer->target));
	return array_append(&typing->places, (struct place){ pointer->value, pointer->target, in,
							     pointer->context });
}

static void keep_type(struct typing *typing, allocation_id id, type_number number,
		      enum type_fit fit, bool is_inferred)
{
	bitmap_set(&typing->reached, id);
	typing->count += typing->allocations.items[id].type == 0;
	typing->allocations.items[id].type =
		number << TYPE_SHIFT | (is_inferred ? IS_INFERRED : 0) | (uint32_t)fit;
}

/* Set *ret if values of the type, or their tails, may have pointers. */
static struct error *leads_on(struct typing *typing, type_number number, bool *ret)
{
	const struct slot *slots;
	uint64_t offset;
	size_t count;

	TRY(slots_of(&typing->slots, number, &slots, &count));
	if (count == 0 && type_find_tail(typing, number, &offset, &number))
		TRY(slots_of(&typing->slots, number, &slots, &count));
	*ret = count > 0;
	return NULL;
}

struct error *typing_set(struct typing *typing, allocation_id id, type_number number,
			 enum type_fit fit, bool is_inferred)
{
	bool is_followed;

	keep_type(typing, id, number, fit, is_inferred);
	TRY(leads_on(typing, number, &is_followed));
	return is_followed ? array_append(&typing->queue, id) : NULL;
}

/* The target may be the header of something else. */
static struct error *add_headed(struct typing *typing, const struct pointer *pointer,
				allocation_id id)
{
	uint32_t tag = tag_of(typing->table, typing_type(typing, pointer->target));
	uint64_t hash = hash_add(hash_add(1, pointer->value), pointer->target);
	struct kept_step step;
	uint8_t byte;

	if (tag == NO_TAG || typing->headed.count >= MOST_PLACES ||
	    !read_bytes(typing, pointer->value + tag, &byte, 1) ||
	    address_map_find(&typing->known, hash) != NOT_IN_MAP)
		return NULL;
	TRY(address_map_add(&typing->known, hash, 0));
	TRY(make_step(typing, pointer, &step));
	return array_append(&typing->headed, (struct headed){ .address = pointer->value,
							      .type = pointer->target,
							      .in = id,
							      .step = step,
							      .context = pointer->context,
							      .tag = byte });
}

struct error *typing_add_region(struct typing *typing, const struct headed *headed,
				type_number number)
{
	const struct pointer pointer = { .value = headed->address,
					 .target = number,
					 .context = headed->context };

	if (typing_is_denied(typing, headed->in, number))
		return NULL;
	if (known_fit(typing, headed->in) <= FIT_REGION ||
	    (known_type(typing, headed->in) == headed->type &&
	     !typing_is_stated(typing, headed->in)))
		keep_type(typing, headed->in, number, FIT_REGION, true);
	if (!has_step(typing, headed->in))
		TRY(typing_set_step(typing, headed->in, headed->step));
	return add_place(typing, &pointer, headed->in);
}

/* True if the type of the block leaves open what is at the address in it. */
static bool has_room_for_regions(const struct typing *typing, allocation_id id, uint64_t address)
{
	enum type_fit fit = known_fit(typing, id);

	return fit <= FIT_REGION ||
	       (fit == FIT_PREFIX && address - allocation_start(typing->input.index, id) >=
					     typing_type(typing, known_type(typing, id))->size);
}

/* The contents of the block are searched later: see inside.c. */
static struct error *add_entered(struct typing *typing, const struct pointer *pointer,
				 allocation_id id)
{
	uint64_t hash = hash_add(2, id);
	struct kept_step step;

	if (known_fit(typing, id) != FIT_NONE || pointer->context == NO_CONTEXT ||
	    typing->entered.count >= MOST_PLACES ||
	    address_map_find(&typing->known, hash) != NOT_IN_MAP)
		return NULL;
	TRY(address_map_add(&typing->known, hash, 0));
	TRY(make_step(typing, pointer, &step));
	return array_append(&typing->entered, (struct entered){ id, pointer->context, step });
}

/* Like add_entered(), for a block of bytes that a pointer to its start says nothing more of. */
static struct error *add_bytes(struct typing *typing, allocation_id id)
{
	uint64_t hash = hash_add(2, id);

	if (typing->contexts.items[id] == NO_CONTEXT || typing->entered.count >= MOST_PLACES ||
	    address_map_find(&typing->known, hash) != NOT_IN_MAP)
		return NULL;
	TRY(address_map_add(&typing->known, hash, 0));
	return array_append(&typing->entered, (struct entered){ id, typing->contexts.items[id],
								typing_step(typing, id) });
}

/* A variable may point to a structure that several units define: see shapes.c. */
static struct error *add_opaque(struct typing *typing, const struct pointer *pointer,
				allocation_id id)
{
	const struct data_type *target = typing_type(typing, pointer->target);
	struct headed opaque = { .address = pointer->value,
				 .type = pointer->target,
				 .in = id,
				 .context = pointer->context };

	if (pointer->from != NO_ALLOCATION || target->kind != TYPE_STRUCTURE ||
	    known_fit(typing, id) != FIT_NONE || typing->opaque.count >= MOST_OPAQUE)
		return NULL;
	TRY(make_step(typing, pointer, &opaque.step));
	return array_append(&typing->opaque, opaque);
}

/* The target may be inferred from those of the same pointer in other values. */
static struct error *add_inner(struct typing *typing, const struct pointer *pointer,
			       allocation_id id)
{
	uint64_t hash = hash_add(hash_add(3, pointer->value), pointer->address);
	struct kept_step step;

	if (pointer->context == NO_CONTEXT || pointer->value % typing->word != 0 ||
	    pointer->type == NO_TYPE || typing->inner.count >= MOST_PLACES ||
	    !has_room_for_regions(typing, id, pointer->value) ||
	    address_map_find(&typing->known, hash) != NOT_IN_MAP)
		return NULL;
	TRY(address_map_add(&typing->known, hash, 0));
	TRY(make_step(typing, pointer, &step));
	return array_append(&typing->inner, (struct inner){
						    .address = pointer->value,
						    .slot_address = pointer->address,
						    .type = pointer->type,
						    .offset = pointer->part,
						    .in = id,
						    .step = step,
						    .context = pointer->context,
					    });
}

/*
 * True if the block counted as one value with a tail, although another value of its type is in the
 * tail: it is a slab of these.
 */
static bool is_in_own_tail(const struct typing *typing, const struct pointer *pointer,
			   allocation_id id)
{
	return known_fit(typing, id) == FIT_TAIL && known_type(typing, id) == pointer->target &&
	       !typing_is_settled(typing, id) &&
	       pointer->value - allocation_start(typing->input.index, id) >=
		       typing_type(typing, pointer->target)->size;
}

/* The value at the block's start is only the first of several. */
static struct error *make_region(struct typing *typing, allocation_id id, type_number number)
{
	const struct pointer first = {
		.value = allocation_start(typing->input.index, id),
		.target = number,
		.context = typing->contexts.items[id],
	};

	keep_type(typing, id, number, FIT_REGION, false);
	return add_place(typing, &first, id);
}

/*
 * Pointers to structures that stand somewhere in a block, as the buckets of a hash table do: up to
 * the first word that leads to nothing of the kind.
 */
static struct error *follow_pointers_within(struct typing *typing, const struct pointer *pointer,
					    allocation_id id)
{
	const type_number target = typing_type(typing, pointer->target)->target;
	const uint64_t start = range_of(typing, id).start, end = range_of(typing, id).end;
	const uint64_t hash = hash_add(hash_add(4, pointer->value), pointer->target);

	if (!is_aggregate(typing_type(typing, target)) || pointer->has_rivals ||
	    pointer->value % typing->word != 0 ||
	    !has_room_for_regions(typing, id, pointer->value) ||
	    address_map_find(&typing->known, hash) != NOT_IN_MAP)
		return NULL;
	TRY(address_map_add(&typing->known, hash, 0));
	for (uint64_t at = pointer->value; end - at >= typing->word; at += typing->word) {
		struct pointer element = {
			.from = id,
			.offset = at - start,
			.address = at,
			.target = target,
			.context = pointer->context,
			.type = pointer->target,
			.is_in_region = true,
		};
		struct conformity conformity;

		if (!read_word(typing, at, &element.value))
			break;
		if (element.value == 0)
			continue;
		element.to = find_used(typing, element.value);
		if (element.to == NO_ALLOCATION || element.value % typing->word != 0)
			break;
		TRY(typing_conforms(typing, element.value, target, &conformity));
		if (conformity.is_violated || conformity.confirmed == conformity.vague)
			break;
		TRY(typing_follow(typing, &element));
	}
	return NULL;
}

/*
 * A structure somewhere in a block that has no type of its own, or one for its beginning only, as
 * pools have them, if what stands there looks like it.
 */
static struct error *follow_into(struct typing *typing, const struct pointer *pointer,
				 allocation_id id)
{
	const struct data_type *target = typing_type(typing, pointer->target);
	bool is_slab = is_in_own_tail(typing, pointer, id);
	struct conformity conformity;
	struct error *error;

	if (pointer->has_rivals || target->kind == TYPE_NONE)
		TRY(add_inner(typing, pointer, id));
	if (target->kind == TYPE_CHARACTER || target->kind == TYPE_NONE)
		return add_entered(typing, pointer, id);
	if (target->kind == TYPE_POINTER)
		return follow_pointers_within(typing, pointer, id);
	if (pointer->has_rivals || !is_aggregate(target) || target->size < typing->word ||
	    pointer->value % typing->word != 0 ||
	    target->size > range_of(typing, id).end - pointer->value ||
	    !(is_slab || has_room_for_regions(typing, id, pointer->value)) ||
	    typing_is_denied(typing, id, pointer->target))
		return NULL;
	error = typing_conforms(typing, pointer->value, pointer->target, &conformity);
	if (!error && !conformity.is_violated)
		error = add_headed(typing, pointer, id);
	if (error || conformity.is_violated ||
	    (conformity.confirmed == 0 &&
	     typing_text_at_end(typing, pointer->value, pointer->target) == 0))
		return error;
	if (!has_step(typing, id))
		TRY(keep_step(typing, id, pointer));
	/* The link of a list of free ones says less than what else stands there. */
	if (known_fit(typing, id) == FIT_NONE ||
	    (known_fit(typing, id) == FIT_REGION && typing_is_link(typing, known_type(typing, id))))
		keep_type(typing, id, pointer->target, FIT_REGION, false);
	if (is_slab)
		TRY(make_region(typing, id, pointer->target));
	return add_place(typing, pointer, id);
}

/* True if the pointer is a "void *" to text behind a header of its own, as of sds. */
static bool is_behind_header(const struct typing *typing, const struct pointer *pointer,
			     struct memory_range range)
{
	return typing->character && pointer->target == NO_TYPE && pointer->value > range.start &&
	       pointer->value - range.start <= LONGEST_HEADER && is_text(typing, pointer->value);
}

/*
 * True if the pointer alone decides the type of its target: not one of a union, see infer.c, unless
 * it points to text behind a header, to which no number would point by chance.
 */
static bool tells_type(const struct typing *typing, const struct pointer *pointer,
		       type_number wanted, struct memory_range range)
{
	enum type_kind kind = typing_type(typing, wanted)->kind;

	if (pointer->is_choice)
		return wanted != pointer->target &&
		       is_filled_with_text(typing, range, pointer->value);
	return kind != TYPE_NONE && kind != TYPE_FUNCTION;
}

/*
 * The structure that the wanted one begins with, if memory looks like that alone: the later blocks
 * of a pool have only the first part of its header.
 */
static struct error *find_first_part(struct typing *typing, struct memory_range range,
				     type_number *wanted, enum type_fit *ret)
{
	const struct data_type *type = typing_type(typing, *wanted), *first;
	const struct type_member *members = type_members(typing->table, type);
	struct conformity conformity;

	if (type->kind != TYPE_STRUCTURE || type->member_count < 2 || members->offset != 0)
		return NULL;
	first = typing_type(typing, members->type);
	if (first->kind != TYPE_STRUCTURE || first->size < 2 * typing->word ||
	    first->size > range.end - range.start)
		return NULL;
	TRY(typing_conforms(typing, range.start, members->type, &conformity));
	if (conformity.is_violated || conformity.confirmed == 0)
		return NULL;
	*wanted = members->type;
	*ret = FIT_PREFIX;
	return NULL;
}

/*
 * Heads of lists in a hash table are an array of structures that refer to others of their type if a
 * number beside the pointer counts them.
 */
static struct error *find_counted_array(struct typing *typing, const struct link *link,
					struct memory_range range, type_number wanted,
					enum type_fit *ret)
{
	const struct data_type *type = typing_type(typing, wanted);
	bool is_array = false;

	if (!is_aggregate(type) || link->whole == NO_TYPE || link->whole == wanted ||
	    link->value != range.start || type->size < 2 * typing->word ||
	    (*ret != FIT_NONE && *ret != FIT_PREFIX) ||
	    !typing_are_counted(typing, range, link, type->size))
		return NULL;
	TRY(typing_begins_as_array(typing, range, wanted, &is_array));
	if (is_array)
		*ret = FIT_ARRAY;
	return NULL;
}

/* A part of the wanted type may be what fits. */
static struct error *find_fit(struct typing *typing, const struct link *link,
			      struct memory_range range, type_number *ret_wanted,
			      enum type_fit *ret)
{
	type_number wanted = *ret_wanted;
	const struct data_type *type = typing_type(typing, wanted);
	uint64_t part;

	/* Pointers of earlier blocks may stand behind a text. */
	*ret = FIT_ARRAY;
	if (type->kind == TYPE_CHARACTER && is_filled_with_text(typing, range, link->value))
		return NULL;
	TRY(typing_find_fit(typing, range, wanted, ret));
	TRY(find_counted_array(typing, link, range, wanted, ret));
	if (*ret == FIT_NONE && (type->kind == TYPE_CHARACTER || type->kind == TYPE_NUMBER) &&
	    typing_is_counted(typing, range, link, type))
		*ret = FIT_ARRAY;
	/*
	 * A pointer to what was freed may lead to a text, which is where the block is now; or to
	 * what is larger.
	 */
	if (*ret != FIT_NONE && is_aggregate(type) &&
	    (is_text(typing, range.start) ||
	     (*ret == FIT_ONE && !is_just_as_large(typing, range, type->size)))) {
		struct conformity conformity;

		TRY(typing_conforms(typing, range.start, wanted, &conformity));
		if (conformity.is_violated)
			*ret = FIT_NONE;
	}
	if (*ret != FIT_NONE)
		return NULL;
	/* A whole value says more than a part, which what follows may look like by chance. */
	TRY(find_first_part(typing, range, ret_wanted, ret));
	if (*ret != FIT_NONE)
		return NULL;
	TRY(typing_find_cut(typing, range, wanted, &part));
	*ret = part ? FIT_PART : FIT_NONE;
	return NULL;
}

/*
 * Set *ret if the target has exactly the size of its type, and looks like it. The rest of a larger
 * block may have a stale pointer, to something freed. A "void *" in an array cannot be wrong.
 */
static struct error *leads_to_its_like(struct typing *typing, const struct pointer *pointer,
				       struct memory_range range, bool *ret)
{
	const struct data_type *target = typing_type(typing, pointer->target);
	struct conformity conformity;

	if (target->kind == TYPE_CHARACTER || target->kind == TYPE_NONE) {
		*ret = target->kind == TYPE_CHARACTER
			       ? is_filled_with_text(typing, range, pointer->value)
			       : known_fit(typing, pointer->from) != FIT_ONE;
		return NULL;
	}
	*ret = false;
	if (pointer->value != range.start || !is_aggregate(target) ||
	    target->size > range.end - range.start ||
	    range.end - range.start - target->size >= MALLOC_UNIT)
		return NULL;
	TRY(typing_conforms(typing, pointer->value, pointer->target, &conformity));
	*ret = !conformity.is_violated && conformity.confirmed > conformity.vague;
	return NULL;
}

/* A hash table has no other type. */
static struct error *set_table(struct typing *typing, const struct pointer *pointer,
			       allocation_id id)
{
	bool is_known = known_fit(typing, id) >= FIT_TABLE;

	if (is_known || typing_is_stated(typing, id) ||
	    typing_is_denied(typing, id, pointer->target))
		return has_step(typing, id) ? NULL : keep_step(typing, id, pointer);
	TRY(keep_step(typing, id, pointer));
	return typing_set(typing, id, pointer->target, FIT_TABLE, false);
}

struct error *typing_let_wait(struct typing *typing, const struct pointer *pointer)
{
	allocation_id id = pointer->to;
	bool is_queued = is_waiting(typing, id);

	TRY(keep_step(typing, id, pointer));
	bitmap_set(&typing->reached, id);
	typing->allocations.items[id].type = pointer->target << TYPE_SHIFT | IS_INFERRED;
	return is_queued ? NULL : array_append(&typing->queue, id);
}

struct error *typing_end_wait(struct typing *typing, allocation_id id)
{
	struct memory_range range = range_of(typing, id);
	type_number wanted = known_type(typing, id);
	enum type_fit fit;
	struct link link = { .whole = NO_TYPE, .value = range.start };
	const struct slot *slot = NULL;

	typing->allocations.items[id].type = 0;
	/* It is asked for only where it may say more: that takes long. */
	if (!is_aggregate(typing_type(typing, wanted)))
		slot = inference_slot_to(typing, id, &link.address, &link.whole);
	if (slot)
		link.offset = slot->offset;
	TRY(find_fit(typing, &link, range, &wanted, &fit));
	if (is_aggregate(typing_type(typing, wanted)) && (fit == FIT_NONE || fit == FIT_PREFIX) &&
	    2 * typing_type(typing, wanted)->size <= range.end - range.start) {
		slot = inference_slot_to(typing, id, &link.address, &link.whole);
		link.offset = slot ? slot->offset : 0;
		if (slot)
			TRY(find_counted_array(typing, &link, range, wanted, &fit));
	}
	if (fit != FIT_NONE && !typing_is_denied(typing, id, wanted))
		keep_type(typing, id, wanted, fit, false);
	return fit == FIT_NONE && typing_type(typing, wanted)->kind == TYPE_CHARACTER
		       ? add_bytes(typing, id)
		       : NULL;
}

struct error *typing_follow(struct typing *typing, const struct pointer *pointer)
{
	allocation_id id = pointer->to;
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
	if (is_waiting(typing, id))
		TRY(typing_end_wait(typing, id));
	TRY(add_opaque(typing, pointer, id));
	if (pointer->is_table)
		return set_table(typing, pointer, id);
	range = range_of(typing, id);
	if (pointer->is_doubtful) {
		bool is_like;

		TRY(leads_to_its_like(typing, pointer, range, &is_like));
		if (!is_like)
			return NULL;
	}
	if (is_behind_header(typing, pointer, range))
		target = typing_type(typing, wanted = typing->character);
	if (pointer->value - range.start > (target->kind == TYPE_CHARACTER ? LONGEST_HEADER : 0))
		return follow_into(typing, pointer, id);
	known = known_fit(typing, id);
	is_first = !has_step(typing, id);
	if (is_first)
		error = keep_step(typing, id, pointer);
	if (error || !tells_type(typing, pointer, wanted, range) ||
	    (known_type(typing, id) == wanted && known > FIT_REGION) ||
	    typing_is_settled(typing, id))
		return error;
	/* The block may be more than the header that is known so far. */
	if (known == FIT_ONE && type_begins_with(typing, wanted, known_type(typing, id)))
		known = FIT_PREFIX;
	if (known == FIT_ONE)
		return NULL;
	TRY(find_fit(
		typing,
		&(struct link){ pointer->type, pointer->part, pointer->address, pointer->value },
		range, &wanted, &fit));
	/* It may be the name at the end of a structure. */
	if (target->kind == TYPE_CHARACTER && pointer->value > range.start)
		TRY(add_entered(typing, pointer, id));
	if (fit <= known || typing_is_denied(typing, id, wanted))
		return NULL;
	if (fit == FIT_TAIL && known == FIT_REGION && known_type(typing, id) == wanted)
		return add_place(typing, pointer, id);
	if (!is_first)
		error = keep_step(typing, id, pointer);
	return error ? error : typing_set(typing, id, wanted, fit, pointer->is_choice);
}

struct error *typing_begin_at(struct typing *typing, allocation_id id, type_number number,
			      enum type_fit fit, uint64_t way, bool is_inferred)
{
	const struct pointer pointer = {
		.from = NO_ALLOCATION,
		.address = allocation_start(typing->input.index, id),
		.type = number,
		.context = typing_enter_context(typing, NO_CONTEXT, way, NO_MEMBER),
	};

	if (!has_step(typing, id))
		TRY(keep_step(typing, id, &pointer));
	return typing_set(typing, id, number, fit, is_inferred);
}

struct error *typing_set_stated(struct typing *typing)
{
	array_for_each(statement, &typing->statements) {
		uint64_t start = allocation_start(typing->input.index, statement->id);
		enum type_fit fit;

		if (statement->is_denied)
			continue;
		TRY(typing_find_fit(typing, range_of(typing, statement->id), statement->type,
				    &fit));
		TRY(typing_begin_at(typing, statement->id, statement->type,
				    fit == FIT_NONE ? FIT_PREFIX : fit, OF_VARIABLE | start,
				    false));
	}
	return NULL;
}
