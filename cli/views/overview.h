/*
 * The first screen: what the core is, what explains its memory, who holds most of it, what leaked.
 *
 * Text has at most 24 lines of 80 columns, on a terminal and in a pipe: names are shortened, and
 * what is there in other commands is left to them. Other formats get the same as tables.
 */
#pragma once

#include "analyzer/kinds/leak_root_kinds.h"
#include "analyzer/owners/holders.h"
#include "analyzer/query/ending.h"
#include "analyzer/query/order.h"
#include "analyzer/report/report.h"

enum { OVERVIEW_LEAKS = 3 }; /* kinds of leak roots that are shown */

/* Resident bytes, by what explains them. */
struct overview_memory {
	uint64_t resident;
	uint64_t used; /* by allocations that did not leak */
	uint64_t leaked, garbage, free;
	uint64_t other;	 /* outside of heaps, or of the allocators themselves */
	bool is_at_most; /* the core does not say what was resident */
};

enum overview_set { OVERVIEW_USED, OVERVIEW_LEAKED, OVERVIEW_ROOTS, OVERVIEW_FREE, OVERVIEW_SETS };

struct first_screen {
	struct analysis *analysis;
	struct ending ending;
	struct overview_memory memory;
	struct set_total sets[OVERVIEW_SETS];
	struct holder holders[MOST_HOLDERS];
	size_t holder_count;
	bool lacks_holders, lacks_leaks;    /* for want of memory */
	struct leak_root_kinds leaks;	    /* sorted by lost bytes, most first */
	char *allocated_by[OVERVIEW_LEAKS]; /* owned; NULL: not known */
	size_t leak_count;		    /* length of leaks */
	struct set_total likely_held;	    /* of what leaked */
};

/* Write it to the report and to those next to it. */
struct error *overview_write(struct analysis *analysis, struct report *report);

/* Write all notes and warnings, in full. */
void overview_write_notes(const struct analysis *analysis, struct report *report);

/* Write it as text. */
struct error *overview_write_text(const struct first_screen *screen, struct report *report);

/* "__main__.Listener", or "408 bytes" where only its size is known; to be freed. */
char *overview_kind_text(const struct first_screen *screen, kind_key kind, allocation_id id);

/* "conns (server)", "app.cache (dict)" or "struct table in conns (server)", to be freed. */
char *overview_holder_text(const struct first_screen *screen, const struct report *report,
			   const struct holder *holder);

/* The program's path to a holder, or to the first of many; NULL: none, or memory is short. */
char *overview_way_text(const struct first_screen *screen, const struct report *report,
			const struct holder *holder);

/* The allocation that stands for the holder, or NO_ALLOCATION. */
allocation_id overview_holder_example(const struct holder *holder);

unsigned int overview_percent(const struct first_screen *screen, const struct holder *holder);
