/*
 * Counts and bytes, by a number: a signature, or a size.
 *
 * A hash table of open addressing, at most half full. It grows with the kinds of allocations, not
 * with the allocations.
 */
#ifndef ANALYZER_KINDS_TALLY_H
#define ANALYZER_KINDS_TALLY_H

#include "analyzer/base/memory.h"

#include <stdint.h>

struct tally {
	uint64_t key;
	uint64_t count; /* 0 only if nothing of this key was ever added */
	uint64_t bytes;
	uint64_t owned;	 /* what else is counted with them, as what is held */
	uint32_t number; /* of its key, in the order in which they were added */
};

struct tally_table {
	struct tally *slots; /* in no order that anything may depend on */
	uint64_t factor;     /* of the hash */
	size_t capacity;     /* a power of two, or 0 */
	size_t count;	     /* of keys */
	struct memory memory;
};

void tally_table_init(struct tally_table *table, struct memory_account *account);
void tally_table_deinit(struct tally_table *table);
DEFINE_DEINIT(tally_table_deinit, struct tally_table)

/* Add to what is counted of the key. */
struct error *tally_add(struct tally_table *table, struct tally tally);

/* The same of at least one; *ret is the number of the key. */
struct error *tally_add_numbered(struct tally_table *table, struct tally tally, uint32_t *ret);

/* The tally of the key, or NULL. */
struct tally *tally_find(const struct tally_table *table, uint64_t key);

/* Most first, equal ones by key; by key upwards; by key downwards. */
int tally_compare_counts(const void *a, const void *b);
int tally_compare_bytes(const void *a, const void *b);
int tally_compare_owned(const void *a, const void *b);
int tally_compare_keys(const void *a, const void *b);
int tally_compare_keys_down(const void *a, const void *b);

/*
 * Move all tallies to the front of slots, in the order of compare. The table can only be read
 * through slots and count then, and released.
 */
void tally_table_sort(struct tally_table *table, int (*compare)(const void *a, const void *b));

#endif
