/*
 * Lines that are SQL: from a line `sql` up to `.quit`, queries end with a semicolon.
 */
#pragma once

#include "cli/prompt/session.h"

/* Runs a command; execute_words(). */
typedef void run_words(struct session *session, char *const *words, size_t count);

/* Take the line if it is for SQL, and run what it completes; false: it is a command. */
bool sql_lines_take(struct session *session, const char *line, run_words *run);

/* There are no more lines: run what was read of a query. */
void sql_lines_end(struct session *session, run_words *run);

/* Forget what was read of a query. */
void sql_lines_give_up(struct sql_lines *lines);

/* The prompt for the next line of a statement; NULL: lines are commands. */
const char *sql_lines_prompt(const struct sql_lines *lines);
