/*
 * heapcore fleet: many cores, in one file of SQLite, and what they have in common.
 *
 *	heapcore fleet [OPTIONS] CORE...
 *	heapcore fleet report [OPTIONS] FILE.db
 *	heapcore fleet gate [OPTIONS] FILE.db
 */
#pragma once

#include "cli/fleet/store.h"

#include <argp.h>

extern const struct argp fleet_parser; /* for the manual, too */

/* Returns the exit status. */
int fleet_main(int count, char **arguments);

/* Options of a query; all borrowed. */
struct fleet_question {
	const char **select, **baseline; /* "NAME=PATTERN": cores that fit all of them */
	size_t select_count, baseline_count;
	uint64_t limit;	      /* rows of a table */
	uint64_t least_cores; /* that a leak must be in to fail the gate */
	uint64_t most_leaked; /* bytes of a core */
	bool has_most_leaked;
};

/* Makes the tables of the report, for the session: docs/fleet/report.sql. */
extern const char fleet_tables[];

/* The whole report. */
struct error *fleet_report(struct store *store, const struct fleet_question *question,
			   struct report *report);

/* Write what the baseline lacks; ERROR_FOUND if there is any. */
struct error *fleet_gate(struct store *store, const struct fleet_question *question,
			 struct report *report);
