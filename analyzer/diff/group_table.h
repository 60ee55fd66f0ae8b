/*
 * The groups of all cores, by name, and what each core has of them.
 *
 * Names stand behind each other in one text, so a dump that makes up a million groups costs a
 * million small rows and no more.
 */
#ifndef ANALYZER_DIFF_GROUP_TABLE_H
#define ANALYZER_DIFF_GROUP_TABLE_H

#include "analyzer/base/table.h"
#include "analyzer/diff/diff.h"

struct group_table {
	HASH_TABLE(struct diff_group) groups;
	struct memory names; /* each with its NUL */
	size_t name_bytes;
	/* struct set_total by number, for each core; it may end early. */
	struct memory totals[MOST_CORES];
};

void group_table_init(struct group_table *table, struct memory_account *account);
void group_table_deinit(struct group_table *table);

/* Add what the core has of the group of that name, which may be a new one. *ret is its number. */
struct error *group_table_add(struct group_table *table, const struct census_name *name,
			      size_t core, struct set_total total, uint32_t *ret);

/* All cores were added: find what each group was and is, and their order. */
void group_table_sort(struct group_table *table, size_t cores);

/* By number before they are sorted, by rank then. */
struct diff_group *group_at(const struct group_table *table, size_t number);
const char *group_name(const struct group_table *table, const struct diff_group *group);
struct set_total group_total(const struct group_table *table, const struct diff_group *group,
			     size_t core);

#endif
