/*
 * The named sets that commands work on.
 *
 * A set is a row of a table: of allocations, as `leaked` or `incoming A`, or
 * of other ranges of memory, as `stacks`. Adding one adds a row and a function.
 */
#ifndef ANALYZER_QUERY_SET_H
#define ANALYZER_QUERY_SET_H

#include "analyzer/analysis.h"
#include "analyzer/query/ranges.h"

struct set {
	const char *name;
	const char *summary; /* a noun phrase */
	bool takes_address;
	enum stage needs;

	/*
	 * Add the members to ret, which is empty. NULL: a set of ranges. What
	 * it needs is built.
	 */
	struct error *(*select)(struct analysis *analysis, uint64_t address,
				struct bitmap *ret);

	/* Of a set of ranges; else NULL. */
	const struct range_kind *ranges;
};

/* The number-th set, or NULL at the end. */
const struct set *set_at(size_t number);

/* An unknown name is an error that says which set may be meant. */
struct error *set_find(const char *name, const struct set **ret);

/* Of the sets `leakroots` and `unreferenced`. */
struct error *set_select_leakroots(struct analysis *analysis, uint64_t address,
				   struct bitmap *ret);
struct error *set_select_unreferenced(struct analysis *analysis,
				      uint64_t address, struct bitmap *ret);

/* The allocation that address is in; that it is in none is an error. */
struct error *set_find_allocation(const struct analysis *analysis,
				  uint64_t address, allocation_id *ret);

#endif
