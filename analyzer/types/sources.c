#include "analyzer/types/typing_parts.h"

#include "analyzer/base/bytes.h"
#include "analyzer/program/debug/variables.h"

#include <string.h>

/* Once this many pointers of a member led somewhere, others of it hardly lead to anything new. */
enum { ENOUGH_POINTERS = 4096, ENOUGH_CHOICES = 1 << 16 };

/* From this many pointers on, the order in which they are followed matters for speed. */
enum { LEAST_SORTED = 1 << 14 };

/* Count values with a type, whose pointers are to be followed. */
struct source {
	allocation_id from; /* or NO_ALLOCATION */
	uint64_t start;	    /* of that; or of the value */
	uint64_t address, end;
	uint64_t doubtful; /* from there on, the block may be malloc's rounding; 0: nothing */
	type_number type;
	uint64_t count;
	uint32_t context;
	bool is_array; /* of which some may never have been written */
	bool is_in_region;
	bool is_leaked;
};

/*
 * True if other pointers may be in place of that slot. A number in their place is an allocation's
 * address only by chance.
 */
static bool has_rivals(const struct slot *slots, size_t count, size_t number)
{
	const struct slot *slot = &slots[number];

	return slot->is_choice &&
	       ((number > 0 && slots[number - 1].offset == slot->offset) ||
		(number + 1 < count && slots[number + 1].offset == slot->offset));
}

static struct error *follow_all(struct typing *typing, const struct source *source);

/*
 * Count a pointer of the slot, unless there were enough. Pointers that leaked all lead to what
 * leaked, or may.
 */
static struct error *count_pointer(struct typing *typing, const struct source *source,
				   const struct slot *slot, bool *ret_enough)
{
	size_t number = (size_t)(slot - typing->slots.slots.items);
	uint64_t key = hash_add(hash_add(0, source->context), number);
	bool is_vague = slot->is_choice || slot->target == NO_TYPE;
	struct followed *known;

	*ret_enough = false;
	if (!typing->input.leaked || source->is_leaked)
		return NULL;
	known = table_find(&typing->followed, key, item, item->key == key);
	if (!known)
		return table_append(&typing->followed, key, (struct followed){ key, 1 });
	*ret_enough = known->count >= (is_vague ? ENOUGH_CHOICES : ENOUGH_POINTERS);
	known->count += !*ret_enough;
	typing->is_partial |= *ret_enough;
	return NULL;
}

/* True if it is the type of the first member, or of that one's first member. */
static bool is_first_member(const struct typing *typing, type_number number, type_number first)
{
	enum { DEEPEST = 4 };

	for (size_t i = 0; i < DEEPEST && number != first; i++) {
		const struct data_type *type = typing_type(typing, number);
		const struct type_member *members = type_members(typing->table, type);

		if (type->kind != TYPE_STRUCTURE || type->member_count == 0 || members->offset != 0)
			return false;
		number = members->type;
	}
	return number == first;
}

/*
 * True if the pointer says no more than is known, as most do: lists and trees have many, and
 * pointers to the link that a node begins with.
 */
static bool is_nothing_new(const struct typing *typing, const struct pointer *pointer)
{
	allocation_id id = pointer->to;
	type_number known;

	if (id == NO_ALLOCATION || pointer->is_table || !has_step(typing, id))
		return false;
	known = known_type(typing, id);
	return (is_waiting(typing, id)
			? is_first_member(typing, known, pointer->target)
			: known == pointer->target && known_fit(typing, id) > FIT_REGION) &&
	       range_of(typing, id).start == pointer->value;
}

static bool is_as_large_as(const struct typing *typing, allocation_id id, type_number number)
{
	return allocation_fits(typing->input.index, range_of(typing, id),
			       typing_type(typing, number)->size, true);
}

/*
 * True if the pointer is the only evidence, in an allocation without a type, or only repeats the
 * type of the first member.
 */
static bool may_wait(const struct typing *typing, const struct pointer *pointer)
{
	allocation_id id = pointer->to;
	enum type_kind kind = typing_type(typing, pointer->target)->kind;

	if (id == NO_ALLOCATION || pointer->is_table || pointer->is_choice ||
	    pointer->is_doubtful || kind == TYPE_NONE || kind == TYPE_FUNCTION ||
	    range_of(typing, id).start != pointer->value)
		return false;
	if (is_waiting(typing, id))
		return is_first_member(typing, pointer->target, known_type(typing, id)) &&
		       is_as_large_as(typing, id, pointer->target);
	return typing->allocations.items[id].type == 0 && !has_step(typing, id);
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
		return may_wait(typing, pointer) ? typing_let_wait(typing, pointer)
						 : typing_follow(typing, pointer);
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
	bool is_enough = false;

	for (uint64_t i = 0; !error && !is_enough && i < source->count; i++) {
		const struct slot *slots;
		size_t count;

		/* Following pointers may have moved the slots. */
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
			TRY(count_pointer(typing, source, &slots[j], &is_enough));
			if (is_enough)
				continue;
			pointer.to = find_used(typing, pointer.value);
			error = follow_linked(typing, source, &pointer, &slots[j]);
			if (!error)
				error = slots_of(&typing->slots, source->type, &slots, &count);
		}
		/* The next element has other pointers, too. */
		is_enough &= count == 1;
	}
	return error;
}

/* Follow the tail of a structure whose last member is an array of any size. */
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
	return fit == FIT_ARRAY || fit == FIT_TAIL ? range.end - typing->word : 0;
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
		.is_leaked = typing->input.leaked && bitmap_get(typing->input.leaked, id),
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

	if (place->in != NO_ALLOCATION) {
		source.start = allocation_start(typing->input.index, place->in);
		source.is_leaked =
			typing->input.leaked && bitmap_get(typing->input.leaked, place->in);
	}
	return follow_all(typing, &source);
}

/*
 * All that is queued is followed before what that leads to. Memory is read faster in order of
 * address, where many are: more than the words that a bitmap of all has.
 */
static struct error *sort_queue(struct typing *typing)
{
	size_t count = typing->allocations.count, from = typing->queued_from;
	struct bitmap *sorted = &typing->sorted;

	typing->sorted_to = typing->queue.count;
	if (typing->queue.count - from < LEAST_SORTED || typing->queue.count - from <= count / 64)
		return NULL;
	if (!sorted->words)
		TRY(bitmap_init(sorted, count, typing->input.account));
	for (size_t i = from; i < typing->queue.count; i++)
		bitmap_set(sorted, typing->queue.items[i]);
	typing->queue.count = from;
	bitmap_for_each(id, sorted)
		typing->queue.items[typing->queue.count++] = (allocation_id)id;
	memset(sorted->words, 0, bitmap_word_count(sorted) * sizeof(*sorted->words));
	typing->sorted_to = typing->queue.count;
	return NULL;
}

static struct error *follow_next(struct typing *typing)
{
	allocation_id id;

	if (typing->queued_from >= typing->sorted_to)
		TRY(sort_queue(typing));
	typing_fetch_ahead(typing);
	id = typing->queue.items[typing->queued_from++];
	if (is_waiting(typing, id))
		TRY(typing_end_wait(typing, id));
	return known_fit(typing, id) == FIT_NONE ? NULL : follow_allocation(typing, id);
}

/* Drop the processed front once it exceeds half. */
static void shorten_queue(struct typing *typing)
{
	size_t from = typing->queued_from;

	if (from <= 4096 || from <= typing->queue.count / 2)
		return;
	typing->queue.count -= from;
	memmove(typing->queue.items, typing->queue.items + from,
		typing->queue.count * sizeof(*typing->queue.items));
	typing->queued_from = 0;
	typing->sorted_to -= from;
}

struct error *typing_follow_queue(struct typing *typing)
{
	struct error *error = NULL;
	uint64_t told = 0, done = 0;

	while (!error && (typing->queued_from < typing->queue.count || typing->places.count)) {
		if (!progress_pass(typing->input.progress, ++done, &told))
			return error_create(ERROR_INTERRUPTED, "interrupted");
		if (typing->queued_from < typing->queue.count) {
			error = follow_next(typing);
			shorten_queue(typing);
		} else {
			struct place place = typing->places.items[--typing->places.count];

			error = follow_place(typing, &place);
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

		visit->error = typing_follow(visit->typing, &pointer);
	}
	return !visit->error;
}

struct error *typing_follow_variables(struct typing *typing)
{
	struct visit visit = { typing, NULL };

	debug_visit_variables(typing->input.debug, typing->table, follow_variable, &visit);
	return visit.error;
}
