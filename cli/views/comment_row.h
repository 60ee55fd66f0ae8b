/*
 * The comments among the members of a set: how an extension reached them, and why a chain ended.
 * Each is a line that begins with #, and a row of a table of its own.
 */
#ifndef CLI_VIEWS_COMMENT_ROW_H
#define CLI_VIEWS_COMMENT_ROW_H

#include "analyzer/query/order.h"
#include "analyzer/report/report.h"

/* The tables that comments are in begin and end with them. */
void comment_row(struct report *report, const struct analysis *analysis,
		 const struct member_comment *comment);

/* The same as a note for the user, if it must be known: where the rows are read by scripts. */
struct error *comment_note(struct analysis *analysis, const struct member_comment *comment);

/* All of the members' comments, in front of what is said of them together. */
void comment_rows(struct report *report, const struct analysis *analysis,
		  const struct members *members);

#endif
