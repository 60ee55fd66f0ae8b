#include "analyzer/types/typing.h"

#include "analyzer/base/address_map.h"
#include "analyzer/base/bytes.h"
#include "analyzer/program/debug/variables.h"
#include "analyzer/types/slots.h"

#include <string.h>

enum {
	FIT_BITS = 3,
	MOST_TYPES = 1 << (32 - FIT_BITS),
	MOST_ORIGINS = 1 << 24,
	MOST_PLACES = 1 << 20, /* outside of the heap, with a type */
	SAMPLE = 16,	       /* elements of an array */
	LONGEST_HEADER = 17,   /* of a string: sds has the longest */
	SAMPLED_WORDS = 32,
	MOST_BETTER = 4, /* times an allocation can fit better */
};

/* Memory outside of the heap that has a type. */
struct place {
	uint64_t address;
	type_number type;
};

/*
 * How an allocation was led to: by the word at offset in an allocation, or by that number of
 * origins. All zeros is none, so what nothing leads to takes no memory.
 */
struct kept_step {
	uint32_t from;	 /* id plus FROM_ALLOCATION, FROM_ORIGIN, or 0 */
	uint32_t offset; /* in words; or number */
};

enum { FROM_ORIGIN = 1, FROM_ALLOCATION = 2 };

struct typing {
	struct typing_input input;
	struct type_table *table;
	struct slot_table slots;
	size_t count;	       /* of allocations that have a type */
	ARRAY(uint32_t) types; /* by allocation: type and fit */
	ARRAY(struct kept_step) steps;
	ARRAY(uint64_t) origins;
	ARRAY(allocation_id) queue; /* whose pointers are to be followed */
	size_t queued_from;
	ARRAY(struct place) places; /* the same */
	struct address_map known;   /* places, by a hash */
};

void typing_destroy(struct typing *typing)
{
	slot_table_deinit(&typing->slots);
	array_release(&typing->types);
	array_release(&typing->steps);
	array_release(&typing->origins);
	array_release(&typing->queue);
	array_release(&typing->places);
	table_release(&typing->known);
	if (typing->table)
		type_table_destroy(typing->table);
	free(typing);
}

static const struct data_type *type_of(const struct typing *typing, type_number number)
{
	return type_get(typing->table, number);
}

static bool is_aggregate(const struct data_type *type)
{
	return type->kind == TYPE_STRUCTURE || type->kind == TYPE_UNION;
}

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

/*
 * Whether a value of the type may stand at address: its pointers are null or lead to something that
 * has room for what they point to, and what are no pointers do not refer to the heap.
 */
static struct error *conforms(struct typing *typing, uint64_t address, type_number number,
			      bool *ret)
{
	const struct data_type *type = type_of(typing, number);
	const struct slot *slots;
	size_t count, next = 0;
	struct error *error = slots_of(&typing->slots, number, &slots, &count);

	*ret = false;
	if (error)
		return error;
	for (uint64_t offset = 0; offset + sizeof(uint64_t) <= type->size;
	     offset += sizeof(uint64_t)) {
		allocation_id id;
		uint64_t word;

		while (next < count && slots[next].offset < offset)
			next++;
		if (!image_read_u64(typing->input.image, address + offset, &word))
			return NULL;
		id = find_used(typing, word);
		if (next == count || slots[next].offset != offset) {
			if (id != NO_ALLOCATION)
				return NULL;
			continue;
		}
		if (slots[next].is_choice || word == 0)
			continue;
		if (!image_find(typing->input.image, word))
			return NULL;
		if (id != NO_ALLOCATION) {
			uint64_t start = allocation_start(typing->input.index, id);
			uint64_t size = allocation_size(typing->input.index, id);
			const struct data_type *target = type_of(typing, slots[next].target);

			if (is_aggregate(target) && target->size > size - (word - start))
				return NULL;
		}
	}
	*ret = true;
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

static struct error *fits_as_array(struct typing *typing, struct memory_range range,
				   type_number number, bool *ret)
{
	const struct data_type *type = type_of(typing, number);
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
	for (uint64_t i = 0; !error && *ret && i < count; i += between)
		error = conforms(typing, range.start + i * type->size, number, ret);
	return error;
}

/* Whether the last member may be of any size. */
static bool has_tail(const struct typing *typing, const struct data_type *type)
{
	for (size_t i = 0; i < MOST_BETTER; i++) {
		const struct data_type *last;

		if (type->kind != TYPE_STRUCTURE || type->member_count == 0)
			return false;
		last = type_of(typing,
			       type_members(typing->table, type)[type->member_count - 1].type);
		if (last->kind == TYPE_ARRAY)
			return last->count <= 1;
		type = last;
	}
	return false;
}

static struct error *find_fit(struct typing *typing, struct memory_range range, type_number number,
			      enum type_fit *ret)
{
	const struct data_type *type = type_of(typing, number);
	struct error *error = NULL;
	bool is_array = false;

	*ret = FIT_NONE;
	/* An array of pointers to anything is known by nothing but its size. */
	if (type->kind == TYPE_POINTER && type_of(typing, type->target)->kind == TYPE_NONE)
		return NULL;
	if (type->size == 0 || type->size > range.end - range.start)
		return NULL;
	if (is_aggregate(type) && allocation_fits(typing->input.index, range, type->size, true)) {
		*ret = FIT_ONE;
	} else if (is_aggregate(type) && has_tail(typing, type)) {
		*ret = FIT_TAIL;
	} else {
		error = fits_as_array(typing, range, number, &is_array);
		*ret = is_array ? FIT_ARRAY : is_aggregate(type) ? FIT_PREFIX : FIT_NONE;
	}
	return error;
}

/* A pointer in memory: where it stands, and what it is to point to. */
struct pointer {
	allocation_id from; /* or NO_ALLOCATION */
	uint64_t offset;    /* in it */
	uint64_t address, value;
	type_number target;
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
		error = array_append(&typing->origins, pointer->address);
	}
	if (!error)
		typing->steps.items[id] = step;
	return error;
}

static bool has_step(const struct typing *typing, allocation_id id)
{
	return typing->steps.items[id].from != 0;
}

/* Memory outside of the heap that a pointer with a type leads to is of that type. */
static struct error *add_place(struct typing *typing, uint64_t address, type_number number)
{
	uint64_t hash = hash_add(hash_add(0, address), number);
	struct error *error;

	if (address % sizeof(uint64_t) != 0 || !is_aggregate(type_of(typing, number)) ||
	    typing->places.count >= MOST_PLACES || !image_find(typing->input.image, address) ||
	    address_map_find(&typing->known, hash) != NOT_IN_MAP)
		return NULL;
	error = address_map_add(&typing->known, hash, 0);
	return error ? error : array_append(&typing->places, (struct place){ address, number });
}

static struct error *set_type(struct typing *typing, allocation_id id, type_number number,
			      enum type_fit fit)
{
	typing->count += typing->types.items[id] == 0;
	typing->types.items[id] = number << FIT_BITS | (uint32_t)fit;
	return array_append(&typing->queue, id);
}

static enum type_fit known_fit(const struct typing *typing, allocation_id id)
{
	return (enum type_fit)(typing->types.items[id] & ((1 << FIT_BITS) - 1));
}

/* What a pointer leads to is of the type that it points to, if that fits better than what it has.
 */
static struct error *follow(struct typing *typing, const struct pointer *pointer)
{
	allocation_id id = find_used(typing, pointer->value);
	const struct data_type *target = type_of(typing, pointer->target);
	struct memory_range range;
	enum type_fit fit, known;
	struct error *error = NULL;
	bool is_right = true;

	if (id == NO_ALLOCATION)
		return allocation_find(typing->input.index, pointer->value) != NO_ALLOCATION ||
				       pointer->is_choice
			       ? NULL
			       : add_place(typing, pointer->value, pointer->target);
	range.start = allocation_start(typing->input.index, id);
	range.end = range.start + allocation_size(typing->input.index, id);
	if (pointer->value - range.start > (target->kind == TYPE_CHARACTER ? LONGEST_HEADER : 0))
		return NULL;
	known = known_fit(typing, id);
	if (!has_step(typing, id))
		error = keep_step(typing, id, pointer);
	if (error || target->kind == TYPE_NONE || target->kind == TYPE_FUNCTION || known == FIT_ONE)
		return error;
	error = find_fit(typing, range, pointer->target, &fit);
	if (!error && pointer->is_choice) {
		/* Another member may be meant: only what fits and conforms is believed. */
		is_right = fit == FIT_ONE;
		if (is_right)
			error = conforms(typing, range.start, pointer->target, &is_right);
	}
	if (error || !is_right || fit <= known)
		return error;
	if (known != FIT_NONE)
		error = keep_step(typing, id, pointer);
	return error ? error : set_type(typing, id, pointer->target, fit);
}

/*
 * Follow the pointers in count values of the type at address, in from or outside of the heap, as
 * far as the end.
 */
static struct error *follow_all(struct typing *typing, allocation_id from, uint64_t address,
				type_number number, uint64_t count, uint64_t end)
{
	uint64_t size = type_of(typing, number)->size;
	struct error *error = NULL;

	for (uint64_t i = 0; !error && i < count; i++) {
		const struct slot *slots;
		size_t slot_count;

		/* What is followed may move the slots. */
		error = slots_of(&typing->slots, number, &slots, &slot_count);
		for (size_t j = 0; !error && j < slot_count; j++) {
			struct pointer pointer = {
				.from = from,
				.offset = i * size + slots[j].offset,
				.address = address + i * size + slots[j].offset,
				.target = slots[j].target,
				.is_choice = slots[j].is_choice,
			};

			if (pointer.offset >= end ||
			    !image_read_u64(typing->input.image, pointer.address, &pointer.value) ||
			    pointer.value == 0)
				continue;
			error = follow(typing, &pointer);
			if (!error)
				error = slots_of(&typing->slots, number, &slots, &slot_count);
		}
		if (slot_count == 0)
			break;
	}
	return error;
}

static struct error *follow_allocation(struct typing *typing, allocation_id id)
{
	type_number number = typing->types.items[id] >> FIT_BITS;
	const struct data_type *type = type_of(typing, number);
	uint64_t size = allocation_size(typing->input.index, id);

	return follow_all(typing, id, allocation_start(typing->input.index, id), number,
			  known_fit(typing, id) == FIT_ARRAY ? size / type->size : 1, size);
}

static struct error *follow_queue(struct typing *typing)
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

			error = follow_all(typing, NO_ALLOCATION, place.address, place.type, 1,
					   UINT64_MAX);
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
	const struct data_type *type = type_of(((struct visit *)data)->typing, variable->type);
	struct visit *visit = data;
	struct pointer pointer = {
		.from = NO_ALLOCATION,
		.address = variable->address,
		.value = variable->value,
		.target = type->target,
	};

	if (!variable->is_in_register)
		visit->error = follow_all(visit->typing, NO_ALLOCATION, variable->address,
					  variable->type, 1, variable->size);
	else if (type->kind == TYPE_POINTER)
		visit->error = follow(visit->typing, &pointer);
	return !visit->error;
}

static struct error *begin(struct typing *typing)
{
	size_t count = allocation_count(typing->input.index);
	struct visit visit = { typing, NULL };
	struct error *error = slot_table_init(&typing->slots, typing->table, typing->input.account);

	if (!error)
		error = array_resize(&typing->types, count);
	if (!error)
		error = array_resize(&typing->steps, count);
	if (error)
		return error;
	debug_visit_variables(typing->input.debug, typing->table, follow_variable, &visit);
	return visit.error;
}

struct error *typing_create(const struct typing_input *input, struct typing **ret)
{
	_cleanup_(typing_destroy) struct typing *typing = calloc(1, sizeof(*typing));
	struct memory_account *account = input->account;
	struct error *error;

	if (!typing)
		return &error_no_memory;
	typing->input = *input;
	typing->types.memory.account = typing->steps.memory.account =
		typing->origins.memory.account = typing->queue.memory.account =
			typing->places.memory.account = account;
	typing->known.memory.account = account;
	error = type_table_create(input->debug, account, &typing->table);
	if (!error && type_count(typing->table) > 1 && type_count(typing->table) < MOST_TYPES) {
		progress_begin(input->progress, "finding types", allocation_count(input->index));
		error = begin(typing);
		if (!error)
			error = follow_queue(typing);
		array_release(&typing->queue);
		array_release(&typing->places);
		table_release(&typing->known);
	}
	if (!error)
		*ret = take(typing);
	return error;
}

const struct type_table *typing_types(const struct typing *typing)
{
	return typing->table;
}

bool typing_of(const struct typing *typing, allocation_id id, struct typed *ret)
{
	if (id >= typing->types.count || known_fit(typing, id) == FIT_NONE)
		return false;
	*ret = (struct typed){ typing->types.items[id] >> FIT_BITS, known_fit(typing, id) };
	return true;
}

const char *typing_name(const struct typing *typing, struct typed typed)
{
	return type_text(typing->table, typed.type,
			 typed.fit == FIT_PREFIX ? "block, beginning with " : "",
			 typed.fit == FIT_ARRAY ? "[]" : "");
}

/* Whether the text is first and second together. */
static bool is_both(const char *text, const char *first, const char *second)
{
	size_t length = strlen(first);

	return strncmp(text, first, length) == 0 && strcmp(text + length, second) == 0;
}

bool typing_has_name(const struct typing *typing, allocation_id id, const char *name)
{
	const struct data_type *type;
	struct typed typed;

	if (!typing_of(typing, id, &typed))
		return false;
	type = type_of(typing, typed.type);
	if (is_aggregate(type) && type->name && typed.fit != FIT_PREFIX) {
		if (strncmp(name, "struct ", 7) == 0)
			name += 7;
		else if (strncmp(name, "union ", 6) == 0)
			name += 6;
		return is_both(name, type->name, typed.fit == FIT_ARRAY ? "[]" : "");
	}
	return strcmp(typing_name(typing, typed), name) == 0;
}

bool typing_step_to(const struct typing *typing, allocation_id id, struct type_step *ret)
{
	const struct kept_step *step;

	if (id >= typing->steps.count || !has_step(typing, id))
		return false;
	step = &typing->steps.items[id];
	if (step->from == FROM_ORIGIN) {
		*ret = (struct type_step){ NO_ALLOCATION, typing->origins.items[step->offset] };
		return true;
	}
	ret->from = step->from - FROM_ALLOCATION;
	ret->address = allocation_start(typing->input.index, ret->from) +
		       (uint64_t)step->offset * sizeof(uint64_t);
	return true;
}

size_t typing_count(const struct typing *typing)
{
	return typing->count;
}
