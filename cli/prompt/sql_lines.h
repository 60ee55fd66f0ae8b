/*
 * Lines that are SQL: from a line `sql` up to `.quit`, queries end with a semicolon.
 */
#ifndef CLI_PROMPT_SQL_LINES_H
#define CLI_PROMPT_SQL_LINES_H

#include "cli/prompt/session.h"

/* Take the line if it is for SQL; false: it is a command. */
bool sql_lines_take(struct session *session, const char *line);

/* There are no more lines: run what was read of a query. */
void sql_lines_end(struct session *session);

/* What to ask for the next line with; NULL: lines are commands. */
const char *sql_lines_prompt(const struct sql_lines *lines);

#endif
