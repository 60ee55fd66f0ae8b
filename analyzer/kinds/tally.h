/*
 * Counts and bytes, by a number: a signature, or a size.
 *
 * The table grows with the kinds of allocations, not with the allocations.
 */
#pragma once

#include "analyzer/base/table.h"

struct tally {
	uint64_t key;
	uint64_t count;
	uint64_t bytes;
	uint64_t owned;	 /* a second sum, such as retained bytes */
	uint32_t number; /* its place among the items, which tells after sorting what it was */
};

/*
 * { .memory.account = account } is the empty one; table_release() releases it. array_sort() sorts
 * the items, and ends finding and adding.
 */
struct tally_table {
	HASH_TABLE(struct tally);
};

/* Add to what is counted of the key; *ret is the tally's number. */
struct error *tally_add_numbered(struct tally_table *table, struct tally tally, uint32_t *ret);

/* Like tally_add_numbered(), unless the count is 0. */
struct error *tally_add(struct tally_table *table, struct tally tally);

/* The tally of the key, or NULL. */
struct tally *tally_find(const struct tally_table *table, uint64_t key);

/* Most first, equal ones by key; by key upwards; by key downwards. */
int tally_compare_counts(const void *a, const void *b);
int tally_compare_bytes(const void *a, const void *b);
int tally_compare_owned(const void *a, const void *b);
int tally_compare_keys(const void *a, const void *b);
int tally_compare_keys_down(const void *a, const void *b);
