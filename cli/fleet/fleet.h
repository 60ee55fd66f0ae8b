/*
 * heapcore fleet: many cores, in one file of SQLite, and what they have in common.
 *
 *	heapcore fleet [OPTIONS] CORE...
 *	heapcore fleet report [OPTIONS] [FILE.db]
 *	heapcore fleet gate [OPTIONS] [FILE.db]
 *	heapcore fleet diff [OPTIONS] [FILE.db] OLD NEW
 *	heapcore fleet show [OPTIONS] [FILE.db] FINGERPRINT
 *	heapcore fleet sql [OPTIONS] [FILE.db] QUERY
 *	heapcore fleet prune [OPTIONS] [FILE.db]
 */
#pragma once

#include "cli/command.h"
#include "cli/fleet/store.h"
#include "cli/prompt/session.h"

#include <argp.h>

extern const struct argp fleet_parser; /* for the manual, too */

/* Returns the exit status. */
int fleet_main(int count, char **arguments);

/* Options of a query; all borrowed. */
struct fleet_question {
	struct word_list select, baseline; /* "NAME=PATTERN": cores that fit all of them */
	uint64_t limit;			   /* rows of a table */
	uint64_t least_cores;		   /* that a leak must be in to fail the gate */
	uint64_t most_leaked;		   /* bytes of a core */
	bool has_most_leaked;
	double most_doubtful; /* of the cores, from 0 to 1 */
	double most_growth;   /* of a kind: 0.5 is half as much again */
	bool has_most_growth;
	bool with_doubtful;   /* cores that were analysed only in part count, too */
	const char *words[2]; /* the builds, the fingerprint, or the query */
	uint64_t older;	      /* ns; 0: any age */
	bool missing;	      /* only those whose file is no more */
};

/* Makes the tables of the report, for the session: docs/fleet/report.sql. */
extern const char fleet_tables[];

/* The whole report. */
struct error *fleet_report(struct store *store, const struct fleet_question *question,
			   struct report *report);

/* The report as OpenMetrics. */
struct error *fleet_metrics(struct store *store, const struct fleet_question *question, FILE *out);

/* Report what differs between two builds. */
struct error *fleet_diff(struct store *store, const struct fleet_question *question,
			 struct report *report);

/* One leak: each build that has it, and a core to open. */
struct error *fleet_show(struct store *store, const struct fleet_question *question,
			 struct report *report);

/* Answer a question in SQL, of the store's tables and those of the report. */
struct error *fleet_sql(struct store *store, const struct fleet_question *question,
			struct report *report);

/*
 * Answer as `fleet WORD` does, in the session's format, to out. path names the store. word is that
 * of a question: "report", "diff", "show", "sql" or "gate".
 */
struct error *fleet_answer(struct session *session, const char *word, struct store *store,
			   const char *path, const struct fleet_question *question, FILE *out);

/* Remove cores; *ret is the number of them. */
struct error *fleet_prune(struct store *store, const struct fleet_question *question, int64_t *ret);

/* Write what the baseline lacks; ERROR_FOUND if there is any. */
struct error *fleet_gate(struct store *store, const struct fleet_question *question,
			 struct report *report);
