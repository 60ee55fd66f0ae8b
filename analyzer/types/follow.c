#include "analyzer/types/typing_parts.h"

#include "analyzer/base/bytes.h"
#include "analyzer/program/debug/variables.h"

#include <string.h>

enum {
	MOST_ORIGINS = 1 << 24,
	MOST_PLACES = 1 << 20, /* with a type, that are no allocations */
	LONGEST_HEADER = 17,   /* of a string: sds has the longest */
	MOST_STEPS_BACK = 64,
};

/* A pointer in memory: where it stands, and what it is to point to. */
struct pointer {
	allocation_id from; /* or NO_ALLOCATION */
	uint64_t offset;    /* in it */
	uint64_t address, value;
	allocation_id to; /* what is used and holds the value, or NO_ALLOCATION */
	type_number target;
	uint32_t context; /* of what it leads to */
	type_number type; /* of the value that it is a part of, or NO_TYPE; and where in it */
	uint32_t part;
	bool is_choice;
	bool is_table;	   /* it leads into the middle of a hash table */
	bool has_rivals;   /* another pointer may stand there */
	bool is_in_region; /* of from, whose own type does not tell what stands there */
	bool is_doubtful;  /* it may stand behind all that the program asked for */
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
				   (uint32_t)(pointer->offset / sizeof(uint64_t)) };
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
 * Whether the steps back from that allocation do not come by the other one, which a new step is to
 * lead from it to; of what is far from a variable that is not known.
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
	struct error *error;

	if (pointer->value % sizeof(uint64_t) != 0 ||
	    !is_aggregate(typing_type(typing, pointer->target)) ||
	    !image_find(typing->input.image, pointer->value) ||
	    address_map_find(&typing->known, hash) != NOT_IN_MAP)
		return NULL;
	if (typing->places.count >= MOST_PLACES) {
		typing_reach_limit(typing, "more than 1,048,576 values wait to be followed");
		return NULL;
	}
	error = address_map_add(&typing->known, hash, 0);
	return error ? error
		     : array_append(&typing->places,
				    (struct place){ pointer->value, pointer->target, in,
						    pointer->context });
}

static void keep_type(struct typing *typing, allocation_id id, type_number number,
		      enum type_fit fit, bool is_inferred)
{
	typing->count += typing->allocations.items[id].type == 0;
	typing->allocations.items[id].type =
		number << TYPE_SHIFT | (is_inferred ? IS_INFERRED : 0) | (uint32_t)fit;
}

/* Whether values of the type, or what stands behind them, may have pointers. */
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

/* What stands there may be the header of something else. */
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

/* Whether the type of the block leaves open what stands at the address in it. */
static bool has_room_for_regions(const struct typing *typing, allocation_id id, uint64_t address)
{
	enum type_fit fit = known_fit(typing, id);

	return fit <= FIT_REGION ||
	       (fit == FIT_PREFIX && address - allocation_start(typing->input.index, id) >=
					     typing_type(typing, known_type(typing, id))->size);
}

/* What stands in the block is looked for later: see inside.c. */
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

/* What stands there may be told from others that the same pointer of others leads to. */
static struct error *add_inner(struct typing *typing, const struct pointer *pointer,
			       allocation_id id)
{
	uint64_t hash = hash_add(hash_add(3, pointer->value), pointer->address);
	struct kept_step step;

	if (pointer->context == NO_CONTEXT || pointer->value % sizeof(uint64_t) != 0 ||
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
 * A structure somewhere in a block that has no type of its own, or one for its beginning only, as
 * pools have them, if what stands there looks like it.
 */
static struct error *follow_into(struct typing *typing, const struct pointer *pointer,
				 allocation_id id)
{
	const struct data_type *target = typing_type(typing, pointer->target);
	struct conformity conformity;
	struct error *error;

	if (pointer->has_rivals || target->kind == TYPE_NONE)
		TRY(add_inner(typing, pointer, id));
	if (target->kind == TYPE_CHARACTER || target->kind == TYPE_NONE)
		return add_entered(typing, pointer, id);
	if (pointer->has_rivals || !is_aggregate(target) || target->size < sizeof(uint64_t) ||
	    pointer->value % sizeof(uint64_t) != 0 ||
	    target->size > range_of(typing, id).end - pointer->value ||
	    !has_room_for_regions(typing, id, pointer->value) ||
	    typing_is_denied(typing, id, pointer->target))
		return NULL;
	error = typing_conforms(typing, pointer->value, pointer->target, &conformity);
	if (!error && !conformity.is_violated)
		error = add_headed(typing, pointer, id);
	if (error || conformity.is_violated || conformity.confirmed == 0)
		return error;
	if (!has_step(typing, id))
		TRY(keep_step(typing, id, pointer));
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
 * Whether the pointer alone says what it leads to: not one of a union, see infer.c, unless it leads
 * to text behind a header, to which no number that may stand there would lead by chance.
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
	if (first->kind != TYPE_STRUCTURE || first->size < 2 * sizeof(uint64_t) ||
	    first->size > range.end - range.start)
		return NULL;
	TRY(typing_conforms(typing, range.start, members->type, &conformity));
	if (conformity.is_violated || conformity.confirmed == 0)
		return NULL;
	*wanted = members->type;
	*ret = FIT_PREFIX;
	return NULL;
}

/* A part of the wanted type may be what fits. */
static struct error *find_fit(struct typing *typing, uint64_t address, struct memory_range range,
			      type_number *ret_wanted, enum type_fit *ret)
{
	type_number wanted = *ret_wanted;
	const struct data_type *type = typing_type(typing, wanted);
	uint64_t part;

	/* Pointers of earlier blocks may stand behind a text. */
	*ret = FIT_ARRAY;
	if (type->kind == TYPE_CHARACTER && is_filled_with_text(typing, range, address))
		return NULL;
	TRY(typing_find_fit(typing, range, wanted, ret));
	/*
	 * A pointer to what was freed may lead to a text, which is where the block is now; or to
	 * what is larger.
	 */
	if (*ret != FIT_NONE && is_aggregate(type) &&
	    (is_text(typing, range.start) ||
	     (*ret == FIT_ONE && !is_just_as_large(range, type->size)))) {
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
 * Whether what the pointer leads to is just as large as it says, and looks like it: what malloc
 * gave more may have an old pointer, to what was freed. A "void *" in an array says nothing that
 * could be wrong.
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
	    range.end - range.start - target->size >= 2 * sizeof(uint64_t))
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

/*
 * What a pointer leads to is of the type that it points to, if that fits better than what is known
 * of it.
 */
static struct error *follow(struct typing *typing, const struct pointer *pointer)
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
	/* What was but a header of it may be known better. */
	if (known == FIT_ONE && type_begins_with(typing, wanted, known_type(typing, id)))
		known = FIT_PREFIX;
	if (known == FIT_ONE)
		return NULL;
	TRY(find_fit(typing, pointer->value, range, &wanted, &fit));
	/* It may be the name at the end of a structure. */
	if (target->kind == TYPE_CHARACTER && pointer->value > range.start)
		TRY(add_entered(typing, pointer, id));
	if (fit <= known || typing_is_denied(typing, id, wanted))
		return NULL;
	if (!is_first)
		error = keep_step(typing, id, pointer);
	return error ? error : typing_set(typing, id, wanted, fit, pointer->is_choice);
}

struct error *typing_begin_at(struct typing *typing, allocation_id id, type_number number,
			      enum type_fit fit, uint64_t way)
{
	const struct pointer pointer = {
		.from = NO_ALLOCATION,
		.address = allocation_start(typing->input.index, id),
		.type = number,
		.context = typing_enter_context(typing, NO_CONTEXT, way, NO_MEMBER),
	};

	if (!has_step(typing, id))
		TRY(keep_step(typing, id, &pointer));
	return typing_set(typing, id, number, fit, false);
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
				    fit == FIT_NONE ? FIT_PREFIX : fit, OF_VARIABLE | start));
	}
	return NULL;
}

/* What has a type, and whose pointers are to be followed: count values. */
struct source {
	allocation_id from; /* or NO_ALLOCATION */
	uint64_t start;	    /* of that; or of the value */
	uint64_t address, end;
	uint64_t doubtful; /* what stands from there on may be what malloc gave more; 0: nothing */
	type_number type;
	uint64_t count;
	uint32_t context;
	bool is_array; /* of which some may never have been written */
	bool is_in_region;
};

/*
 * Whether other pointers may stand in place of that slot. A number that may is no address of an
 * allocation but by chance.
 */
static bool has_rivals(const struct slot *slots, size_t count, size_t number)
{
	const struct slot *slot = &slots[number];

	return slot->is_choice &&
	       ((number > 0 && slots[number - 1].offset == slot->offset) ||
		(number + 1 < count && slots[number + 1].offset == slot->offset));
}

static struct error *follow_all(struct typing *typing, const struct source *source);

/* Whether the pointer says no more than is known, as most do: lists and trees have many. */
static bool is_nothing_new(const struct typing *typing, const struct pointer *pointer)
{
	allocation_id id = pointer->to;

	return id != NO_ALLOCATION && !pointer->is_table &&
	       known_type(typing, id) == pointer->target && known_fit(typing, id) > FIT_REGION &&
	       has_step(typing, id) && range_of(typing, id).start == pointer->value;
}

/* Follow the pointer to what it leads to, which may be told by what stands beside it. */
static struct error *follow_linked(struct typing *typing, const struct source *source,
				   struct pointer *pointer, const struct slot *slot)
{
	const struct link link = { pointer->type, pointer->part, pointer->address, pointer->value };
	struct linked linked = { .target = pointer->target };
	struct source inside = *source;

	TRY(typing_find_node(typing, &link, &linked));
	pointer->target = linked.target;
	pointer->is_table = linked.is_table;
	if (!linked.inside && is_nothing_new(typing, pointer))
		return NULL;
	if (linked.is_told)
		pointer->is_choice = pointer->has_rivals = false;
	/* Lists and trees are of one context. */
	pointer->context = pointer->target == source->type
				   ? source->context
				   : typing_enter_slot(typing, source->context, slot);
	if (!linked.inside)
		return follow(typing, pointer);
	inside.address = linked.inside;
	inside.type = linked.target;
	inside.count = 1;
	inside.context = pointer->context;
	inside.is_array = false;
	inside.is_in_region = pointer->from != NO_ALLOCATION;
	return follow_all(typing, &inside);
}

static struct error *follow_all(struct typing *typing, const struct source *source)
{
	uint64_t size = typing_type(typing, source->type)->size;
	struct error *error = NULL;

	for (uint64_t i = 0; !error && i < source->count; i++) {
		const struct slot *slots;
		size_t count;

		/* What is followed may move the slots. */
		TRY(slots_of(&typing->slots, source->type, &slots, &count));
		if (count == 0)
			break;
		if (source->is_array) {
			struct conformity conformity;

			TRY(typing_conforms(typing, source->address + i * size, source->type,
					    &conformity));
			if (conformity.is_violated)
				continue;
			TRY(slots_of(&typing->slots, source->type, &slots, &count));
		}
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
				.has_rivals = has_rivals(slots, count, j),
				.is_in_region = source->is_in_region,
				.is_doubtful = source->doubtful && address >= source->doubtful,
			};

			if (address >= source->end || !read_word(typing, address, &pointer.value) ||
			    pointer.value == 0 ||
			    !slot_stands(&typing->slots, typing->input.image, &slots[j], address))
				continue;
			pointer.to = find_used(typing, pointer.value);
			error = follow_linked(typing, source, &pointer, &slots[j]);
			if (!error)
				error = slots_of(&typing->slots, source->type, &slots, &count);
		}
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

/* From where on a block may only have what malloc gave more than was asked for; 0: nowhere. */
static uint64_t find_doubtful(const struct typing *typing, allocation_id id)
{
	struct memory_range range = range_of(typing, id);
	enum type_fit fit = known_fit(typing, id);

	if (fit == FIT_ONE)
		return range.start + typing_type(typing, known_type(typing, id))->size;
	return fit == FIT_ARRAY || fit == FIT_TAIL ? range.end - sizeof(uint64_t) : 0;
}

/* The values of a hash table that are there. */
static struct error *follow_table(struct typing *typing, const struct source *whole)
{
	uint64_t size = typing_type(typing, whole->type)->size;
	struct memory_range range = { whole->start, whole->end };
	struct source source = *whole;
	struct hash_table table;

	if (!hash_table_of(typing->input.index, range, size, &table))
		return NULL;
	source.is_in_region = true;
	source.doubtful = 0;
	for (uint64_t i = 0; i < table.count; i++) {
		uint8_t byte;

		if (!read_bytes(typing, table.control + i, &byte, sizeof(byte)) ||
		    byte & TABLE_EMPTY)
			continue;
		source.address = table.control - (i + 1) * size;
		TRY(follow_all(typing, &source));
	}
	return NULL;
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
		.doubtful = find_doubtful(typing, id),
	};

	if (known_fit(typing, id) == FIT_ARRAY) {
		source.count = (range.end - range.start) / typing_type(typing, number)->size;
		source.is_array = is_aggregate(typing_type(typing, number));
	}
	if (known_fit(typing, id) == FIT_TABLE)
		return follow_table(typing, &source);
	if (known_fit(typing, id) == FIT_PART) {
		uint64_t part;

		TRY(typing_find_cut(typing, range, number, &part));
		source.end = range.start + part;
		return follow_all(typing, &source);
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
		.is_in_region = place->in != NO_ALLOCATION,
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
			typing_fetch_ahead(typing);
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
	uint32_t context = typing_enter_context(visit->typing, NO_CONTEXT,
						OF_VARIABLE | variable->address, NO_MEMBER);

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
			.to = find_used(visit->typing, variable->value),
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
