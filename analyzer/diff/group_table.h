/*
 * The groups of all cores, by name, and what each core has of them.
 *
 * Names stand behind each other in one text, so a dump that makes up a million groups costs a
 * million small rows and no more.
 */
#pragma once

#include "analyzer/base/table.h"
#include "analyzer/diff/census.h"
#include "analyzer/query/query.h"

enum { MOST_CORES = 64 };

/* In the name of a group of what one holder has of one kind: between both names. */
enum { HELD_BETWEEN = '\n' };

/* Growth is that from the oldest core to the newest. */
struct diff_group {
	uint64_t name;	      /* where it is among the names */
	const char *text;     /* the name, once the groups are sorted */
	uint64_t size;	      /* of its members; 0: of any size */
	uint64_t added, gone; /* allocations; only of one process */
	uint64_t survived;    /* in all cores */
	struct set_total now; /* in the newest core */
	int64_t bytes, count; /* by how much it grew */
	uint32_t number;      /* in the order of their coming */
	uint32_t steps;	      /* from core to core, in which bytes grew */
	bool only_grows;      /* in all of two or more steps */
};

struct group_table {
	HASH_TABLE(struct diff_group) groups;
	ARRAY(char) names; /* each with its NUL */
	/* Indexed by number, for each core; it may end early. */
	ARRAY(struct set_total) totals[MOST_CORES];
};

void group_table_init(struct group_table *table, struct memory_account *account);
void group_table_deinit(struct group_table *table);

/* Add what the core has of the group of that name, which may be a new one. *ret is its number. */
struct error *group_table_add(struct group_table *table, const struct census_name *name,
			      size_t core, struct set_total total, uint32_t *ret);

/* All cores were added: find what each group was and is, and their order. */
void group_table_sort(struct group_table *table, size_t cores);

/* The group's total in that core. */
struct set_total group_total(const struct group_table *table, const struct diff_group *group,
			     size_t core);
