#include "analyzer/runtimes/crystal/fields.h"

#include "analyzer/program/debug/debug.h"

enum { OFFSET_BITS = 32 };

void field_table_init(struct field_table *table, struct debug *debug, const struct module *module,
		      struct memory_account *account)
{
	*table = (struct field_table){ .debug = debug,
				       .module = module,
				       .names = { .memory.account = account } };
	table->known.memory.account = account;
	table->numbers.memory.account = account;
}

void field_table_deinit(struct field_table *table)
{
	table_release(&table->known);
	table_release(&table->numbers);
	array_release(&table->names);
}

struct reading {
	struct field_table *table;
	uint32_t type;
	struct error *error;
};

static uint64_t key_of(uint32_t type, uint64_t offset)
{
	return (uint64_t)type << OFFSET_BITS | offset;
}

/* Of several that begin at an offset, the outermost comes first. */
static bool add_field(void *data, uint64_t offset, const char *name)
{
	struct reading *reading = data;
	struct field_table *table = reading->table;
	uint64_t key = key_of(reading->type, offset);

	if (offset >> OFFSET_BITS || address_map_find(&table->numbers, key) != NOT_IN_MAP)
		return true;
	reading->error = array_reserve(&table->names, 1);
	if (!reading->error)
		reading->error =
			address_map_add(&table->numbers, key, (uint32_t)table->names.count);
	if (reading->error)
		return false;
	table->names.items[table->names.count++] = name;
	return true;
}

static struct error *read_fields(struct field_table *table, uint32_t number, const char *name)
{
	struct reading reading = { .table = table, .type = number };
	struct error *error = address_map_add(&table->known, number, 1);

	if (error)
		return error;
	debug_visit_members(table->debug, table->module, name, add_field, &reading);
	return reading.error;
}

const char *field_table_find(struct field_table *table, uint32_t number, const char *name,
			     uint64_t offset)
{
	struct error *error = NULL;
	uint32_t place;

	if (offset >> OFFSET_BITS)
		return NULL;
	if (address_map_find(&table->known, number) == NOT_IN_MAP)
		error = read_fields(table, number, name);
	/* Without memory for it, it is as if nothing was known. */
	if (error)
		error_destroy(error);
	place = address_map_find(&table->numbers, key_of(number, offset));
	return place < table->names.count ? table->names.items[place] : NULL;
}
