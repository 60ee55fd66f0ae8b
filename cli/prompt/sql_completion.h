/*
 * Completion of a word of SQL: tables and views behind FROM and JOIN, columns, functions and
 * keywords elsewhere, and the commands that begin with a dot.
 */
#pragma once

/* Characters that end a word of SQL, for readline. */
extern const char sql_word_breaks[];

/* For readline's rl_attempted_completion_function. */
char **sql_complete_word(const char *word, int start, int end);
