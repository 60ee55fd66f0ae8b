#include "analyzer/types/slots.h"

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

	*table = (struct slot_table){ .types = types };
	table->slots.memory.account = table->ranges.memory.account = account;
	error = array_resize(&table->ranges, type_count(types));
	for (size_t i = 0; !error && i < table->ranges.count; i++)
		table->ranges.items[i].first = NOT_MADE;
	return error;
}

void slot_table_deinit(struct slot_table *table)
{
	array_release(&table->slots);
	array_release(&table->ranges);
}

/* What is added to the slots from first on. */
struct making {
	struct slot_table *table;
	size_t first;
};

static struct error *add_slots(const struct making *making, type_number number, uint64_t offset,
			       bool is_choice, size_t depth);

static struct error *add_members(const struct making *making, const struct data_type *type,
				 uint64_t offset, bool is_choice, size_t depth)
{
	const struct type_member *members = type_members(making->table->types, type);
	struct error *error = NULL;

	for (size_t i = 0; !error && i < type->member_count; i++)
		if (!members[i].is_bit_field)
			error = add_slots(making, members[i].type, offset + members[i].offset,
					  is_choice || members[i].is_variant ||
						  type->kind == TYPE_UNION,
					  depth + 1);
	return error;
}

/* Those of the first element, again for each. */
static struct error *add_elements(const struct making *making, const struct data_type *type,
				  uint64_t offset, bool is_choice, size_t depth)
{
	const struct data_type *element = type_get(making->table->types, type->target);
	size_t before = making->table->slots.count, each;
	struct error *error = add_slots(making, type->target, offset, is_choice, depth + 1);

	each = making->table->slots.count - before;
	if (each == 0 || element->size == 0)
		return error;
	for (uint64_t i = 1; !error && i < type->count; i++) {
		for (size_t j = 0; !error && j < each; j++) {
			struct slot slot = making->table->slots.items[before + j];

			if (making->table->slots.count - making->first >= MOST_OF_A_TYPE ||
			    i * element->size > UINT32_MAX - slot.offset)
				return NULL;
			slot.offset += (uint32_t)(i * element->size);
			error = array_append(&making->table->slots, slot);
		}
	}
	return error;
}

static struct error *add_slots(const struct making *making, type_number number, uint64_t offset,
			       bool is_choice, size_t depth)
{
	const struct data_type *type = type_get(making->table->types, number);

	if (depth == DEEPEST || offset > UINT32_MAX ||
	    making->table->slots.count - making->first >= MOST_OF_A_TYPE)
		return NULL;
	switch (type->kind) {
	case TYPE_POINTER:
		if (offset % sizeof(uint64_t) != 0)
			return NULL;
		return array_append(&making->table->slots,
				    (struct slot){ (uint32_t)offset, type->target, is_choice });
	case TYPE_STRUCTURE:
	case TYPE_UNION:
		return add_members(making, type, offset, is_choice, depth);
	case TYPE_ARRAY:
		return add_elements(making, type, offset, is_choice, depth);
	default:
		return NULL;
	}
}

DEFINE_COMPARE(compare_slots, struct slot, ASCENDING(offset), ASCENDING(target))

struct error *slots_of(struct slot_table *table, type_number type, const struct slot **ret,
		       size_t *ret_count)
{
	struct slot_range *range = &table->ranges.items[type];
	struct error *error = NULL;

	if (range->first == NOT_MADE) {
		const struct making making = { table, table->slots.count };

		*range = (struct slot_range){ (uint32_t)making.first, 0 };
		if (making.first < MOST_SLOTS)
			error = add_slots(&making, type, 0, false, 0);
		range->count = (uint32_t)(table->slots.count - making.first);
		if (range->count)
			SORT(&table->slots.items[range->first], range->count, compare_slots);
	}
	*ret = table->slots.items ? &table->slots.items[range->first] : NULL;
	*ret_count = range->count;
	return error;
}
