#include "analyzer/types/typing_parts.h"

#include <string.h>

enum { MOST_TYPES = 1 << (32 - TYPE_SHIFT) };

void typing_release_work(struct typing *typing)
{
	arrays_release(&typing->contexts, &typing->queue);
	table_release(&typing->paths);
	typing->queued_from = typing->sorted_to = 0;
	bitmap_deinit(&typing->sorted);
	tables_release(&typing->followed, &typing->region_slots, &typing->known, &typing->variables,
		       &typing->nodes);
	arrays_release(&typing->places, &typing->headed, &typing->entered, &typing->opaque,
		       &typing->inner);
}

void typing_destroy(struct typing *typing)
{
	typing_release_work(typing);
	array_release(&typing->statements);
	slot_table_deinit(&typing->slots);
	array_release(&typing->allocations);
	bitmap_deinit(&typing->reached);
	arrays_release(&typing->far_steps, &typing->origins);
	table_release(&typing->values);
	free(typing->last);
	free(typing);
}

static struct error *add_variables(struct typing *typing)
{
	const struct type_variable *variables = type_variables(typing->table);

	for (size_t i = 0; i < type_variable_count(typing->table); i++)
		if (!variables[i].is_thread_local &&
		    is_aggregate(typing_type(typing, variables[i].type)) &&
		    address_map_find(&typing->variables, variables[i].address) == NOT_IN_MAP)
			TRY(address_map_add(&typing->variables, variables[i].address,
					    variables[i].type));
	return NULL;
}

struct error *typing_find_all(struct typing *typing)
{
	size_t count = allocation_count(typing->input.index);

	progress_begin(typing->input.progress, "finding types", count);
	TRY(array_resize(&typing->allocations, count));
	TRY(array_resize(&typing->contexts, count));
	TRY(bitmap_init(&typing->reached, count, typing->input.account));
	/* NO_CONTEXT is one, too. */
	TRY(table_append(&typing->paths, 0, (struct context){ .place = NO_MEMBER }));
	TRY(add_variables(typing));
	TRY(typing_set_stated(typing));
	TRY(typing_follow_variables(typing));
	TRY(typing_follow_queue(typing));
	TRY(typing_set_objects(typing));
	TRY(typing_follow_queue(typing));
	return typing_infer(typing);
}

/* "char" rather than what else is a byte of text. */
static void find_character(struct typing *typing)
{
	for (type_number i = 1; i < type_count(typing->table); i++) {
		const struct data_type *type = typing_type(typing, i);

		if (type->kind != TYPE_CHARACTER)
			continue;
		if (!typing->character)
			typing->character = i;
		if (type->name && strcmp(type->name, "char") == 0) {
			typing->character = i;
			return;
		}
	}
}

static struct error *make(struct typing *typing)
{
	TRY(slot_table_init(&typing->slots, typing->table, typing->input.account));
	find_character(typing);
	typing_find_node_headers(typing);
	return typing_find_all(typing);
}

struct error *typing_create(const struct typing_input *input, struct typing **ret)
{
	_cleanup_(typing_destroy) struct typing *typing = calloc(1, sizeof(*typing));
	struct memory_account *account = input->account;
	struct error *error = NULL;

	TRY_MEMORY(typing);
	typing->input = *input;
	typing->last = calloc(1, sizeof(*typing->last));
	TRY_MEMORY(typing->last);
	*typing->last = (struct last_used){ .view = { input->image },
					    .bounds = allocation_bounds(input->index) };
	arrays_use(account, &typing->allocations, &typing->far_steps, &typing->origins,
		   &typing->queue, &typing->places, &typing->headed, &typing->statements,
		   &typing->entered, &typing->opaque, &typing->inner, &typing->region_slots,
		   &typing->variables, &typing->known, &typing->nodes, &typing->values,
		   &typing->followed, &typing->paths, &typing->contexts);
	typing->table = input->types;
	typing->types = type_get(input->types, NO_TYPE);
	typing->word = image_word_size(input->image);
	if (type_count(typing->table) > 1 && type_count(typing->table) < MOST_TYPES) {
		error = make(typing);
		typing_release_work(typing);
	}
	if (!error)
		*ret = take(typing);
	return error;
}

const struct type_table *typing_types(const struct typing *typing)
{
	return typing->table;
}

bool typing_decode(const struct typing *typing, uint32_t kept, struct typed *ret)
{
	const struct data_type *type = typing_type(typing, kept >> TYPE_SHIFT);
	enum type_fit fit = (enum type_fit)(kept & ((1 << FIT_BITS) - 1));

	if (fit == FIT_NONE)
		return false;
	/* "void *[]" would say no more than its size does. */
	if (type->kind == TYPE_POINTER && typing_type(typing, type->target)->kind == TYPE_NONE)
		return false;
	*ret = (struct typed){ kept >> TYPE_SHIFT, fit, kept & IS_INFERRED, false };
	return true;
}

/* True if it is a pointer to values of that type, or to such a pointer. */
static bool is_pointer_to(const struct typing *typing, const struct data_type *type,
			  type_number number)
{
	type_number target = type->target;

	if (type->kind == TYPE_POINTER && typing_type(typing, target)->kind == TYPE_POINTER)
		target = typing_type(typing, target)->target;
	return type->kind == TYPE_POINTER && target == number;
}

/* True if the member only gives a union its size or alignment. */
static bool is_filler(const struct typing *typing, const struct data_type *type)
{
	const struct data_type *element =
		type->kind == TYPE_ARRAY ? typing_type(typing, type->target) : type;

	return element->kind == TYPE_CHARACTER || element->kind == TYPE_NUMBER;
}

bool typing_is_link(const struct typing *typing, type_number number)
{
	enum { MOST_MEMBERS = 3 };
	const struct data_type *type = typing_type(typing, number);
	const struct type_member *members = type_members(typing->table, type);
	bool is_link = is_aggregate(type) && type->member_count <= MOST_MEMBERS;
	size_t links = 0;

	for (size_t i = 0; is_link && i < type->member_count; i++) {
		const struct data_type *member = typing_type(typing, members[i].type);
		bool is_pointer = is_pointer_to(typing, member, number);

		links += is_pointer;
		is_link = is_pointer || (type->kind == TYPE_UNION && is_filler(typing, member));
	}
	return is_link && links > 0;
}

/* A link in a block says nothing about the block. */
static bool says_nothing(const struct typing *typing, struct typed typed)
{
	return (typed.fit == FIT_PREFIX || typed.fit == FIT_REGION) &&
	       typing_is_link(typing, typed.type);
}

bool typing_of(const struct typing *typing, allocation_id id, struct typed *ret)
{
	struct typed typed;

	if (id >= typing->allocations.count ||
	    !typing_decode(typing, typing->allocations.items[id].type, &typed))
		return false;
	typed.is_stated = typing_is_stated(typing, id);
	if (!typed.is_stated && says_nothing(typing, typed))
		return false;
	*ret = typed;
	return true;
}

static const char probably[] = "probably ";

const char *typing_name(const struct typing *typing, struct typed typed)
{
	bool is_array = typed.fit == FIT_ARRAY || typed.fit == FIT_LIKE_ARRAY;

	return type_text(typing->table, typed.type,
			 typed.fit == FIT_PREFIX   ? "block, beginning with "
			 : typed.fit == FIT_REGION ? "block with "
			 : typed.fit == FIT_PART   ? "part of "
			 : typed.fit == FIT_TABLE  ? "hash table of "
			 : typed_is_like(typed)	   ? probably
						   : "",
			 is_array ? "[]" : "");
}

/* True if the text is first followed by second. */
static bool is_both(const char *text, const char *first, const char *second)
{
	size_t length = strlen(first);

	return strncmp(text, first, length) == 0 && strcmp(text + length, second) == 0;
}

bool typed_has_name(const struct typing *typing, struct typed typed, const char *name)
{
	const struct data_type *type = typing_type(typing, typed.type);

	if (typed_is_like(typed) && strncmp(name, probably, sizeof(probably) - 1) == 0)
		name += sizeof(probably) - 1;
	if (is_aggregate(type) && type->name && typed.fit > FIT_PREFIX && typed.fit != FIT_TABLE) {
		if (strncmp(name, "struct ", 7) == 0)
			name += 7;
		else if (strncmp(name, "union ", 6) == 0)
			name += 6;
		return is_both(name, type->name,
			       typed.fit == FIT_ARRAY || typed.fit == FIT_LIKE_ARRAY ? "[]" : "");
	}
	if (typed_is_like(typed))
		typed.fit = FIT_ARRAY;
	return strcmp(typing_name(typing, typed), name) == 0;
}

struct kept_step typing_step(const struct typing *typing, allocation_id id)
{
	struct short_step step = typing->allocations.items[id].step;

	switch (step.place) {
	case 0:
		return (struct kept_step){ 0 };
	case BY_ORIGIN:
		return (struct kept_step){ FROM_ORIGIN, step.number };
	case BY_FAR_STEP:
		return typing->far_steps.items[step.number];
	default:
		return (struct kept_step){ step.number + FROM_ALLOCATION, step.place - AT_START };
	}
}

struct error *typing_set_step(struct typing *typing, allocation_id id, struct kept_step step)
{
	struct short_step *ret = &typing->allocations.items[id].step;

	bitmap_set(&typing->reached, id);
	if (step.from == 0) {
		*ret = (struct short_step){ 0 };
	} else if (step.from == FROM_ORIGIN) {
		*ret = (struct short_step){ step.offset, BY_ORIGIN };
	} else if (step.offset <= UINT16_MAX - AT_START) {
		*ret = (struct short_step){ step.from - FROM_ALLOCATION,
					    (uint16_t)(step.offset + AT_START) };
	} else {
		TRY(array_append(&typing->far_steps, step));
		*ret = (struct short_step){ (uint32_t)typing->far_steps.count - 1, BY_FAR_STEP };
	}
	return NULL;
}

bool typing_read_step(const struct typing *typing, struct kept_step step, uint64_t *ret)
{
	if (step.from == FROM_ORIGIN)
		return typing->origins.items[step.offset].type != NO_TYPE &&
		       read_word(typing, typing->origins.items[step.offset].address, ret);
	return step.from >= FROM_ALLOCATION &&
	       read_word(typing,
			 allocation_start(typing->input.index, step.from - FROM_ALLOCATION) +
				 (uint64_t)step.offset * typing->word,
			 ret);
}

bool typing_step_to(const struct typing *typing, allocation_id id, struct type_step *ret)
{
	struct kept_step step;

	if (id >= typing->allocations.count || !has_step(typing, id))
		return false;
	step = typing_step(typing, id);
	if (step.from == FROM_ORIGIN) {
		const struct origin *origin = &typing->origins.items[step.offset];

		*ret = (struct type_step){ NO_ALLOCATION, origin->address, origin->type == NO_TYPE,
					   origin->led_to_other };
		return true;
	}
	ret->is_in_register = ret->led_to_other = false;
	ret->from = step.from - FROM_ALLOCATION;
	ret->address = allocation_start(typing->input.index, ret->from) +
		       (uint64_t)step.offset * typing->word;
	return true;
}

struct error *typing_count_value(struct typing *typing, allocation_id in, type_number number)
{
	uint64_t key = region_key(in, number);
	struct region_count *known = table_find(&typing->values, key, item, item->key == key);

	if (!known)
		return table_append(&typing->values, key, (struct region_count){ key, 1 });
	known->count++;
	return NULL;
}

uint32_t typing_values_in(const struct typing *typing, allocation_id id, type_number number)
{
	uint64_t key = region_key(id, number);
	const struct region_count *known = table_find(&typing->values, key, item, item->key == key);

	return known ? known->count : 0;
}

const char *typing_limit(const struct typing *typing)
{
	return typing->limit;
}

size_t typing_count(const struct typing *typing)
{
	return typing->count;
}

bool typing_is_partial(const struct typing *typing)
{
	return typing->is_partial;
}
