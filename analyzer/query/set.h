/*
 * The named sets that commands work on.
 *
 * A set is a row of a table: of allocations, as `leaked` or `incoming A`, or of other ranges of
 * memory, as `stacks`. Adding one adds a row and a function.
 */
#ifndef ANALYZER_QUERY_SET_H
#define ANALYZER_QUERY_SET_H

#include "analyzer/analysis/liveness.h"
#include "analyzer/query/members.h"
#include "analyzer/query/ranges.h"

struct set {
	const char *name;
	const char *summary;   /* a noun phrase */
	const char *arguments; /* what it takes, as "ADDRESS OFFSET"; or NULL */
	enum stage needs;

	/*
	 * Add the members to ret, which is empty. NULL: a set of ranges, one with an order, or of
	 * those in a state. What it needs is built.
	 */
	struct error *(*select)(struct analysis *analysis, const struct set_arguments *arguments,
				struct bitmap *ret);

	/* Of a set of ranges; else NULL. */
	const struct range_kind *ranges;

	/* Instead of select: append the members in an order of their own. */
	struct error *(*walk)(struct analysis *analysis, const struct set_arguments *arguments,
			      struct members *ret);

	/* Instead of select: all in that state. */
	enum live_state state;

	/* A bit for each kind of roots that select is to ask about. */
	uint32_t roots;

	/* For help: commands that run, one a line; more paragraphs, or NULL. */
	const char *example;
	const char *description;
};

/* How many arguments the set takes. */
size_t set_argument_count(const struct set *set);

/* The number-th set, or NULL at the end. */
const struct set *set_at(size_t number);

/*
 * The set of that name. One that is not known may be named by the user: the set then is set_named,
 * whose arguments' name is to be that name.
 */
const struct set *set_find(const char *name);
extern const struct set set_named;

/* That there is no such set, and which may be meant; analysis may be NULL. */
struct error *set_unknown(const struct analysis *analysis, const char *name);

/* Of the sets `leakroots` and `unreferenced`. */
struct error *set_select_leakroots(struct analysis *analysis, const struct set_arguments *arguments,
				   struct bitmap *ret);
struct error *set_select_unreferenced(struct analysis *analysis,
				      const struct set_arguments *arguments, struct bitmap *ret);

/* The allocation that address is in; that it is in none is an error. */
struct error *set_find_allocation(const struct analysis *analysis, uint64_t address,
				  allocation_id *ret);

#endif
