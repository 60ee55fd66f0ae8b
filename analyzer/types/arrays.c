#include "analyzer/types/inference.h"

#include "analyzer/base/bytes.h"

/*
 * Arrays of "void *", whose own type would say nothing: they are of pointers to what all arrays
 * that the same member leads to have in them, as the hash tables of one structure do. So the empty
 * ones are known, too.
 */

/* The totals for all arrays that one member of a structure, or one variable, points to. */
struct arrays {
	uint64_t key;
	type_number type; /* of the first element */
	uint64_t count, all;
};

struct arrays_table {
	HASH_TABLE(struct arrays) all;
};

static struct error *arrays_at(struct arrays_table *table, uint64_t key, struct arrays **ret)
{
	*ret = table_find(&table->all, key, item, item->key == key);
	if (!*ret) {
		TRY(table_append(&table->all, key, (struct arrays){ .key = key }));
		*ret = &table->all.items[table->all.count - 1];
	}
	return NULL;
}

/* The type of what a word of an array leads to; NO_TYPE: it is not known. */
static type_number type_of_element(const struct typing *typing, allocation_id id, uint64_t word)
{
	type_number known = known_type(typing, id);
	enum type_fit fit = known_fit(typing, id);
	bool is_text = fit == FIT_ARRAY && typing_type(typing, known)->kind == TYPE_CHARACTER;

	return allocation_start(typing->input.index, id) == word && (fit >= FIT_TAIL || is_text)
		       ? known
		       : NO_TYPE;
}

/* Words that point elsewhere, such as marks for deleted elements, prove nothing. */
static void count_elements(const struct typing *typing, struct memory_range range,
			   struct arrays *arrays)
{
	for (uint64_t at = range.start; range.end - at >= typing->word; at += typing->word) {
		type_number type;
		allocation_id id;
		uint64_t word;

		if (!read_word(typing, at, &word) || word == 0)
			continue;
		id = find_used(typing, word);
		if (id == NO_ALLOCATION)
			continue;
		type = type_of_element(typing, id, word);
		if (arrays->type == NO_TYPE)
			arrays->type = type;
		arrays->all++;
		arrays->count += type != NO_TYPE && type == arrays->type;
	}
}

static bool is_of_pointers(const struct typing *typing, allocation_id id)
{
	const struct data_type *type = typing_type(typing, known_type(typing, id));

	return known_fit(typing, id) == FIT_ARRAY && type->kind == TYPE_POINTER &&
	       typing_type(typing, type->target)->kind == TYPE_NONE &&
	       !typing_is_stated(typing, id);
}

/* By the member of the structure around it, and by the way from the variable. */
static size_t keys_of(struct typing *typing, allocation_id id, uint64_t keys[2])
{
	uint64_t address;
	type_number type;
	const struct slot *slot = inference_slot_to(typing, id, &address, &type);
	uint32_t context = typing->contexts.items[id];

	keys[0] = hash_add(2, context);
	if (slot)
		keys[1] = hash_add(hash_add(1, type), slot->way);
	return context == NO_CONTEXT ? 0 : slot ? 2 : 1;
}

static struct error *count_arrays(struct typing *typing, struct arrays_table *table)
{
	bitmap_for_each(reached, &typing->reached) {
		const allocation_id id = (allocation_id)reached;
		uint64_t keys[2];
		size_t count = is_of_pointers(typing, id) ? keys_of(typing, id, keys) : 0;

		for (size_t i = 0; i < count; i++) {
			struct arrays *arrays;

			TRY(arrays_at(table, keys[i], &arrays));
			count_elements(typing, range_of(typing, id), arrays);
		}
	}
	return NULL;
}

static bool are_alike(const struct arrays *arrays)
{
	return arrays->count * 100 >= arrays->all * 98;
}

static type_number pointer_to(const struct typing *typing, type_number target)
{
	for (type_number i = 1; i < type_count(typing->table); i++)
		if (typing_type(typing, i)->kind == TYPE_POINTER &&
		    typing_type(typing, i)->target == target)
			return i;
	return NO_TYPE;
}

/* The pointer that all arrays of the key consist of, and this one; NO_TYPE: it is not known. */
static type_number elect(const struct typing *typing, struct arrays_table *table, uint64_t key,
			 allocation_id id)
{
	const struct arrays *arrays = table_find(&table->all, key, item, item->key == key);
	struct arrays own = { .type = arrays->type };

	if (arrays->count < ENOUGH || !are_alike(arrays))
		return NO_TYPE;
	count_elements(typing, range_of(typing, id), &own);
	return are_alike(&own) ? pointer_to(typing, arrays->type) : NO_TYPE;
}

static void name_arrays(struct typing *typing, struct arrays_table *table)
{
	bitmap_for_each(reached, &typing->reached) {
		const allocation_id id = (allocation_id)reached;
		uint64_t keys[2];
		size_t count = is_of_pointers(typing, id) ? keys_of(typing, id, keys) : 0;
		type_number pointer = NO_TYPE;

		for (size_t i = 0; i < count && pointer == NO_TYPE; i++)
			pointer = elect(typing, table, keys[i], id);
		if (pointer != NO_TYPE && !typing_is_denied(typing, id, pointer))
			typing->allocations.items[id].type =
				pointer << TYPE_SHIFT | IS_INFERRED | FIT_ARRAY;
	}
}

struct error *infer_arrays(struct typing *typing)
{
	struct arrays_table table = { .all.memory.account = typing->input.account };
	struct error *error = count_arrays(typing, &table);

	if (!error)
		name_arrays(typing, &table);
	table_release(&table.all);
	return error;
}
