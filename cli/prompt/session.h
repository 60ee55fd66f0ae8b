/*
 * One run of heapcore: a dump, the commands given on it, what was said.
 *
 * Messages go to standard error, escaped, for a dump may have put anything into them. Findings are
 * shown once each, before the output of the command that first needed the stage in which they were
 * found.
 */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/report.h"
#include "cli/prompt/machine.h"
#include "cli/prompt/progress.h"
#include "cli/prompt/tags.h"

enum colour { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

struct output;
struct report_file;

/* The position in a script, for messages. */
struct script {
	const char *name;
	size_t line;	       /* line of the command's beginning */
	struct script *caller; /* that sourced it, or NULL */
};

/* Lines that are SQL; see sql_lines.h. */
struct sql_lines {
	bool on;
	char *text; /* an unfinished query; owned; or NULL */
};

struct session {
	struct analysis *analysis; /* owned; NULL: there is no dump */
	const char *subject;	   /* the name in reports; NULL: the path */
	const char *unopened;	   /* the path of a dump that cannot be opened; borrowed; or NULL */
	const struct error *why_unopened; /* borrowed */
	struct progress_line progress;
	FILE *messages; /* instead of standard error; borrowed; or NULL */
	const struct report_format *format;
	const char *table;	      /* the only one to be written; NULL: see table_choice */
	const struct tag_words *tags; /* borrowed; or NULL */
	struct report_file *files[8]; /* of -o; owned; see cli/prompt/reports.h */
	size_t file_count;
	enum colour colour;
	const struct debug_options *debug; /* borrowed; or NULL */
	size_t maximum_memory;		   /* bytes; 0: no limit */
	uint64_t most_rows;		   /* of a table, and of what is listed; 0: all */
	bool quiet;
	bool no_content; /* reports leave out the contents of memory */
	bool shows_kept; /* but those that a slim core has */
	bool chap;	 /* or show them as chap does, to the letter */
	bool with_kinds; /* reports say of which kinds their columns are; see struct report */
	bool at_prompt;
	bool pages; /* page output that is longer than the screen */

	struct sql_lines sql;
	bool redirected;       /* `redirect on` */
	bool given_lines;      /* by a script or otherwise, were they only comments */
	bool leaving;	       /* `quit` */
	struct script *script; /* that is being read, the innermost */
	struct output *output; /* of the command being run, the innermost */

	struct work_split splits[MOST_SPLITS]; /* for session_show_costs() */

	bool wrong_usage; /* decides the exit status */
	bool failed;
	bool found; /* a gate found what it looks for */
	bool told_vanished;
	bool doubted; /* it was said that answers may be wrong */
	size_t findings_shown;
	size_t findings_left_out[FINDING_WEIGHTS]; /* told of */
};

/* Progress is shown on standard error unless quiet. */
void session_init(struct session *session, bool quiet);
void session_deinit(struct session *session);
DEFINE_DEINIT(session_deinit, struct session)

/* Close the dump, so that another can be opened; the settings stay. */
void session_close(struct session *session);

/* Open the dump at path. */
struct error *session_open(struct session *session, const char *path);

/*
 * Use the side file of the core that is open; make it if there is none, or if it is of another core
 * or another heapcore. Where it cannot be made, the analysis goes on without.
 */
struct error *session_use_side_file(struct session *session, const char *core);

/* Do the analysis anew, and say whether the side file tells the same. */
struct error *session_verify_side_file(struct session *session, const char *core);

/* Show what went wrong, and remember it for the exit status. */
void session_complain(struct session *session, struct error *error);

/* Tell something that a user may want to know, unless quiet. */
void session_note(struct session *session, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Tell what changes the meaning of an answer, even if quiet. */
void session_caveat(struct session *session, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Have it among the findings if a file was cut while it was read. */
void session_check_files(struct session *session);

/* Show the findings that were not shown yet. */
void session_show_findings(struct session *session);

/* Count those found so far as shown: the command has written them. */
void session_pass_findings(struct session *session);

/* Say, once, that answers may be wrong, if that is so. */
void session_doubt(struct session *session);

/* True if the user pressed Ctrl-C. */
bool session_interrupted(const struct session *session);

/* Print what each stage cost to standard error. */
void session_show_costs(struct session *session);

/* The exit status that the commands so far add up to. */
int session_status(const struct session *session);

/* Show the error unless it is NULL; returns the exit status, also of what was interrupted. */
int session_end(struct session *session, struct error *error);
