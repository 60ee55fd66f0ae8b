/*
 * The named sets that commands work on.
 *
 * A set is a row of a table: of allocations, as `leaked` or `incoming A`, or of other ranges of
 * memory, as `stacks`. Adding one adds a row, and a selector or a kind of ranges unless one of
 * those that there are can select it.
 */
#pragma once

#include "analyzer/analysis/liveness.h"
#include "analyzer/query/members.h"
#include "analyzer/query/ranges.h"

/*
 * Add the members to ret, which is empty: to its set, or by members_append() if they have an order
 * of their own. What the set needs is built.
 */
typedef struct error *set_selector(struct analysis *analysis, const struct set_arguments *arguments,
				   struct members *ret);

/* The groups of 'summarize', if the set alone is asked for. */
enum set_summary { SUMMARY_OF_KINDS, SUMMARY_OF_LEAK_ROOTS, SUMMARY_OF_CODE };

struct set {
	const char *name;
	const char *summary; /* a noun phrase */
	enum stage needs;

	/* One of these: the state of all members, a selector, what the ranges are. */
	enum live_state state;
	set_selector *select;
	const struct range_kind *ranges;

	enum set_summary summary_of;
	bool is_ordered; /* members have an order of their own */

	const char *arguments; /* the arguments, as "ADDRESS OFFSET"; or NULL */
	uint32_t choice;       /* meaning depends on select; see its comment */

	/* For help: commands that run, one a line; more paragraphs, or NULL. */
	const char *example;
	const char *description;
};

/* How many arguments the set takes. */
size_t set_argument_count(const struct set *set);

/* True if the number-th argument of the set is an offset, not an address. */
bool set_argument_is_offset(const struct set *set, size_t number);

/* The number-th set, or NULL at the end. */
const struct set *set_at(size_t number);

/*
 * The set of that name. One that is not known may be named by the user: the set then is set_named,
 * whose arguments' name is to be that name.
 */
const struct set *set_find(const char *name);
extern const struct set set_named;

/* The error for an unknown set, with a suggestion; analysis may be NULL. */
struct error *set_unknown(const struct analysis *analysis, const char *name);

/* For select_at_roots(): a bit for each kind of roots, and these. */
enum {
	THREAD_ROOTS = 1 << ROOT_STACK | 1 << ROOT_REGISTER,
	ALL_ROOTS = (1 << ROOT_KINDS) - 1,
	ROOTS_DIRECTLY = 1 << ROOT_KINDS, /* their direct targets, not all that is reachable */
	ROOTS_ONLY = 2 << ROOT_KINDS,	  /* less what other roots lead to */
};

/* For other selectors. */
enum {
	CHOICE_NONE,
	CHOICE_FREE,	      /* select_outgoing(): free allocations, not used ones */
	CHOICE_EXACT,	      /* select_incoming(): only what refers to the start */
	CHOICE_BACKWARDS,     /* select_chain() */
	CHOICE_UNCOLLECTABLE, /* select_managed() */
	CHOICE_ZEROS,	      /* select_waste(): not duplicates */
};

/* The selectors of the table, in selectors.c. */
set_selector select_all, select_at_roots, select_atrisk, select_chain, select_code,
	select_allocation, select_incoming, select_leakroots, select_likelyheld, select_lostcount,
	select_managed, select_named, select_outgoing, select_unreferenced, select_waste;

/* Add the leaked allocations that no other leaked one refers to. STAGE_REACHABILITY is built. */
void unreferenced_find(const struct analysis *analysis, struct bitmap *ret);

/* The allocation that address is in; that it is in none is an error. */
struct error *set_find_allocation(const struct analysis *analysis, uint64_t address,
				  allocation_id *ret);
