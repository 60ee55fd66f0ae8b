/*
 * Those allocations, of many that are offered, of which a value is largest.
 *
 * They are kept in a heap with the least of them on top, which gives way to any better one: so many
 * take as much memory as are wanted, 16 bytes each.
 */
#ifndef ANALYZER_QUERY_LARGEST_H
#define ANALYZER_QUERY_LARGEST_H

#include "analyzer/heap/index.h"

struct largest {
	struct memory memory; /* of what stands in the heap */
	size_t count, limit;
};

/* How many are kept at most; 0: all. */
void largest_init(struct largest *largest, size_t limit, struct memory_account *account);
void largest_deinit(struct largest *largest);
DEFINE_DEINIT(largest_deinit, struct largest)

struct error *largest_offer(struct largest *largest, allocation_id id, uint64_t value);

/* Put those kept in order, for largest_at(); nothing is offered afterwards. */
void largest_sort(struct largest *largest);

/* The largest first, equal ones by address. */
allocation_id largest_at(const struct largest *largest, size_t number);

#endif
