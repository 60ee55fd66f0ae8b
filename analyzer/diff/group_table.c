#include "analyzer/diff/group_table.h"

#include "analyzer/base/bytes.h"

#include <string.h>

void group_table_init(struct group_table *table, struct memory_account *account)
{
	*table = (struct group_table){
		.groups.memory.account = account,
		.names.memory.account = account,
	};
	for (size_t i = 0; i < MOST_CORES; i++)
		table->totals[i].memory.account = account;
}

void group_table_deinit(struct group_table *table)
{
	table_release(&table->groups);
	array_release(&table->names);
	for (size_t i = 0; i < MOST_CORES; i++)
		array_release(&table->totals[i]);
}

struct set_total group_total(const struct group_table *table, const struct diff_group *group,
			     size_t core)
{
	if (group->number >= table->totals[core].count)
		return (struct set_total){ 0 };
	return table->totals[core].items[group->number];
}

static bool is_named(const struct group_table *table, const struct diff_group *group,
		     const struct census_name *name)
{
	const char *known = table->names.items + group->name;
	size_t length = strlen(name->prefix);

	return group->size == name->size && strncmp(known, name->prefix, length) == 0 &&
	       strcmp(known + length, name->text) == 0;
}

static uint64_t name_key(const struct census_name *name)
{
	uint64_t hash = hash_add(secret_factor(), name->size);

	return hash_text(hash_text(hash, name->prefix), name->text);
}

static struct error *add_name(struct group_table *table, const struct census_name *name)
{
	size_t prefix = strlen(name->prefix), text = strlen(name->text);
	char *place;

	TRY(array_reserve(&table->names, prefix + text + 1));
	place = table->names.items + table->names.count;
	memcpy(place, name->prefix, prefix);
	memcpy(place + prefix, name->text, text + 1);
	table->names.count += prefix + text + 1;
	return NULL;
}

/* The number of the group of that name, added if it is not there yet. */
static struct error *find_group(struct group_table *table, const struct census_name *name,
				uint32_t *ret)
{
	uint64_t key = name_key(name);
	const struct diff_group *known =
		table_find(&table->groups, key, group, is_named(table, group, name));
	struct diff_group group = {
		.name = table->names.count,
		.size = name->size,
		.number = (uint32_t)table->groups.count,
	};

	*ret = known ? known->number : group.number;
	if (known)
		return NULL;
	TRY(add_name(table, name));
	return table_append(&table->groups, key, group);
}

struct error *group_table_add(struct group_table *table, const struct census_name *name,
			      size_t core, struct set_total total, uint32_t *ret)
{
	__auto_type totals = &table->totals[core];

	TRY(find_group(table, name, ret));
	if (*ret >= totals->count) {
		TRY(array_reserve(totals, *ret + 1 - totals->count));
		totals->count = *ret + (size_t)1;
	}
	set_total_add(&totals->items[*ret], total);
	return NULL;
}

static void compare_ends(const struct group_table *table, struct diff_group *group, size_t cores)
{
	struct set_total old = group_total(table, group, 0);

	group->now = group_total(table, group, cores - 1);
	/* Amounts are far below the half of what fits. */
	group->bytes = (int64_t)(group->now.bytes - old.bytes);
	group->count = (int64_t)(group->now.count - old.count);
	group->text = table->names.items + group->name;
	for (size_t i = 0; i + 1 < cores; i++)
		group->steps +=
			group_total(table, group, i + 1).bytes > group_total(table, group, i).bytes;
	group->only_grows = cores > 2 && group->steps == cores - 1;
}

DEFINE_COMPARE(compare_groups, struct diff_group, DESCENDING(only_grows), DESCENDING(bytes),
	       DESCENDING(count), ALPHABETICAL(text), ASCENDING(size))

void group_table_sort(struct group_table *table, size_t cores)
{
	for (size_t i = 0; i < table->groups.count; i++)
		compare_ends(table, &table->groups.items[i], cores);
	array_sort(&table->groups, compare_groups);
}
