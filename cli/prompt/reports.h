/*
 * The reports of one command: one to where its output goes, and one to each file that was named by
 * -o, in a format of its own.
 */
#pragma once

#include "cli/prompt/output.h"
#include "cli/prompt/session.h"

#include <argp.h>

/* A file of -o, open for as long as the session is. */
struct report_file {
	const struct report_format *format;
	struct output output;
};

enum { MOST_REPORT_FILES = 8 };

/* The values of -o: "FILE", in the format that its ending tells, or "FORMAT:FILE". */
struct report_file_names {
	const char *list[MOST_REPORT_FILES]; /* borrowed */
	size_t count;
};

/* Add one while options are parsed; more than there may be are wrong usage. */
error_t report_file_names_add(struct report_file_names *names, struct argp_state *state,
			      const char *value);

/* Open all of them. None must be the dump. */
struct error *report_files_open(struct session *session, const struct report_file_names *names,
				const char *dump);

/* Write what is left of all files, and say what could not be written. */
struct error *report_files_close(struct session *session);

/* A command's reports; the first is what it writes to. */
struct reports {
	struct report list[MOST_REPORT_FILES + 1];
	size_t count;
	struct report_subject subject;
	struct table_choice choice;
	struct tags tags;
	char *command;	 /* of the subject; owned */
	bool quiet;	 /* they leave out notes */
	bool no_content; /* they leave out the contents of memory */
	bool shows_kept; /* but those that a slim core has */
	bool chap;	 /* see struct report, also of the next */
	bool with_kinds;
	size_t width; /* width of the first subject's report */
	uint64_t most_rows;
};

/*
 * Open them for the command of that name, which the line may have as a prefix: of the format, to
 * stream, and to the session's files if the words are not run by another command. The struct must
 * stay where it is.
 */
struct error *reports_open(struct reports *reports, struct session *session,
			   const struct report_format *format, const char *command,
			   const struct line *line, FILE *stream, bool colour);

/* A table that was asked for and that the command does not have is wrong usage. */
struct error *reports_close(struct reports *reports);

/* Tables that formats of one table left out, but for totals, as "a, b", to be freed; NULL: none. */
char *reports_left_out(const struct reports *reports);
