/*
 * The tables of the command `diff`.
 */
#pragma once

#include "analyzer/diff/growth.h"
#include "analyzer/report/report.h"

/* A comparison, and how to show it. */
struct diff_view {
	const struct diff *diff;
	uint64_t elapsed; /* ns, as the user says; 0: as the cores tell */
	uint64_t limit;	  /* of groups; 0: none */
	const struct analysis *newest;
	const struct growths *holders; /* of what grew; NULL: not shown */
};

/* Write how the cores are related, the time between them, and what each has. */
void diff_write_cores(struct report *report, const struct diff_view *view);

/* Write the growth of each kind, and its rate. */
void diff_write_kinds(struct report *report, const struct diff_view *view);

/* Write the growth, its rate, and how many allocations are new, gone and survived. */
void diff_write_growth(struct report *report, const struct diff_view *view);
