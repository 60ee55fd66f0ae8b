#include "analyzer/types/siblings_search.h"

#include "analyzer/base/bytes.h"

/*
 * Leaked allocations to which a pointer of one leads that looks like a type: what that is declared
 * to point to is what they look like, if nothing in them speaks against it. They may lead on.
 */

enum {
	MOST_ELEMENTS = 1 << 12,
	FEW_LETTERS = 3, /* which a number may be */
	LEAST_MISLED = 3,
	MISLED_IN = 20, /* one pointer in so many, and more, speaks against a type */
};

/* Find what an allocation looks like to which that pointer leads; FIT_NONE: nothing. */
static struct error *find_fit(struct typing *typing, allocation_id id, type_number target,
			      enum type_fit *ret)
{
	struct memory_range range = range_of(typing, id);
	enum type_kind kind = typing_type(typing, target)->kind;
	bool is_text = typing_text_size(typing, range.start, range.end - range.start) >
		       (kind == TYPE_NUMBER ? FEW_LETTERS + 1 : 0);
	struct conformity conformity;

	*ret = FIT_NONE;
	if (typing_type(typing, target)->size == 0 || is_text ||
	    (kind != TYPE_NUMBER && kind != TYPE_POINTER && kind != TYPE_STRUCTURE) ||
	    (kind == TYPE_POINTER && !siblings_may_be_array(typing, target)))
		return NULL;
	TRY(typing_find_fit(typing, range, target, ret));
	if (*ret != FIT_ONE)
		return NULL;
	TRY(typing_conforms(typing, range.start, target, &conformity));
	if (conformity.is_violated || conformity.doubtful > conformity.confirmed)
		*ret = FIT_NONE;
	return NULL;
}

static uint64_t link_hash(type_number type, bool is_array)
{
	return hash_add(hash_add(2, type), is_array);
}

static bool is_linked(const struct sibling_type *item, type_number type, bool is_array)
{
	return item->is_by_link && item->type == type && item->is_array == is_array;
}

/* The number of the type that such allocations share. */
static struct error *find_number(struct sibling_search *search, allocation_id from,
				 type_number type, bool is_array, uint32_t *ret)
{
	const uint64_t hash = link_hash(type, is_array);
	const struct sibling_type *known =
		table_find(search->types, hash, item, is_linked(item, type, is_array));

	*ret = known ? (uint32_t)(known - search->types->items) + 1 : 0;
	if (known || search->types->count >= MOST_SIBLING_TYPES)
		return NULL;
	TRY(table_append(
		search->types, hash,
		(struct sibling_type){
			.type = type, .example = from, .is_array = is_array, .is_by_link = true }));
	*ret = (uint32_t)search->types->count;
	return NULL;
}

/*
 * Count a pointer of what looks like the type to another one of it, or to what is none: with the
 * type that pointers lead to, for all that look like it.
 */
static struct error *count_led(struct sibling_search *search, allocation_id from, allocation_id id,
			       type_number target)
{
	struct typing *typing = search->typing;
	const struct sibling_type *like =
		&search->types->items[search->siblings->numbers.items[from] - 1];
	struct memory_range range = range_of(typing, id);
	struct conformity conformity = { .is_violated = true };
	uint32_t number;

	if (like->is_array || target != like->type ||
	    typing_type(typing, target)->kind != TYPE_STRUCTURE)
		return NULL;
	if (typing_fit_of_one(typing, range, target) >= FIT_TAIL)
		TRY(typing_conforms_but(typing, range.start, target, like->words.odd[2],
					&conformity));
	TRY(find_number(search, from, target, false, &number));
	if (number && conformity.is_violated)
		search->types->items[number - 1].misled++;
	else if (number)
		search->types->items[number - 1].led++;
	return NULL;
}

static struct error *follow_pointer(struct sibling_search *search, allocation_id from,
				    uint64_t pointer, type_number target)
{
	struct typing *typing = search->typing;
	struct siblings *siblings = search->siblings;
	allocation_id id = find_used(typing, pointer);
	enum type_fit fit;
	uint32_t number;

	if (id == NO_ALLOCATION || allocation_start(typing->input.index, id) != pointer)
		return NULL;
	TRY(count_led(search, from, id, target));
	if (!bitmap_get(search->leaked, id) || siblings->numbers.items[id] ||
	    known_fit(typing, id) != FIT_NONE || typing_is_denied(typing, id, target))
		return NULL;
	TRY(find_fit(typing, id, target, &fit));
	if (fit != FIT_ONE && fit != FIT_ARRAY)
		return NULL;
	TRY(find_number(search, from, target, fit == FIT_ARRAY, &number));
	if (!number)
		return NULL;
	siblings->numbers.items[id] = number;
	siblings->count++;
	return array_append(&typing->queue, id);
}

/* Follow the pointers of a value, or element. */
static struct error *follow_value(struct sibling_search *search, allocation_id id, uint64_t address,
				  type_number type)
{
	struct typing *typing = search->typing;
	const struct slot *slots;
	size_t count;

	TRY(slots_of(&typing->slots, type, &slots, &count));
	for (size_t i = 0; i < count; i++) {
		const struct slot slot = slots[i];
		uint64_t word;

		if (slot.is_choice || !read_word(typing, address + slot.offset, &word) || !word ||
		    !slot_stands(&typing->slots, typing->input.image, &slot, address + slot.offset))
			continue;
		TRY(follow_pointer(search, id, word, slot.target));
		/* Testing other values may have moved the slots. */
		TRY(slots_of(&typing->slots, type, &slots, &count));
	}
	return NULL;
}

static struct error *follow(struct sibling_search *search, allocation_id id)
{
	struct typing *typing = search->typing;
	const struct sibling_type *like =
		&search->types->items[search->siblings->numbers.items[id] - 1];
	const type_number type = like->type;
	const uint64_t size = typing_type(typing, type)->size;
	struct memory_range range = range_of(typing, id);
	uint64_t count = like->is_array && size ? (range.end - range.start) / size : 1;

	for (uint64_t i = 0; i < count && i < MOST_ELEMENTS; i++)
		TRY(follow_value(search, id, range.start + i * size, type));
	return NULL;
}

static bool is_misled(const struct sibling_search *search, const struct sibling_type *like)
{
	const struct sibling_type *type =
		like->is_array ? NULL
			       : table_find(search->types, link_hash(like->type, false), item,
					    is_linked(item, like->type, false));

	return type && type->misled >= LEAST_MISLED &&
	       (uint64_t)type->misled * MISLED_IN > (uint64_t)type->led + type->misled;
}

/* Drop what looks like a type whose pointers to its like lead to something else. */
static void drop_misled(struct sibling_search *search)
{
	struct siblings *siblings = search->siblings;

	bitmap_for_each(id, search->leaked) {
		uint32_t *number = &siblings->numbers.items[id];

		if (*number == 0 || !is_misled(search, &siblings->types.items[*number - 1]))
			continue;
		*number = 0;
		siblings->count--;
	}
}

struct error *siblings_follow(struct sibling_search *search)
{
	struct typing *typing = search->typing;
	uint64_t passed = typing->queued_from;
	size_t nameless = 0;

	bitmap_for_each(id, search->leaked) {
		if (search->siblings->numbers.items[id])
			TRY(array_append(&typing->queue, (allocation_id)id));
		else
			nameless += known_fit(typing, (allocation_id)id) == FIT_NONE;
	}
	while (typing->queued_from < typing->queue.count && nameless > 0) {
		typing_fetch_ahead(typing);
		TRY(follow(search, typing->queue.items[typing->queued_from++]));
		if (!progress_pass(typing->input.progress, typing->queued_from, &passed))
			return error_create(ERROR_INTERRUPTED, "interrupted");
	}
	drop_misled(search);
	return NULL;
}
