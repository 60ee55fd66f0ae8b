/*
 * Running commands: one line, or a file of them.
 */
#pragma once

#include "cli/command.h"
#include "cli/prompt/lexer.h"
#include "cli/prompt/session.h"

/* Run a line of the command language, and complain about what goes wrong. */
void execute_line(struct session *session, const char *text);

/* Run a command that is taken apart already. words is not empty. */
void execute_words(struct session *session, char *const *words, size_t count);

/* Have a command say why the dump at path cannot be opened, if it does that. */
void execute_unopened(struct session *session, char *const *words, size_t count, const char *path,
		      const struct error *why);

/*
 * Run the commands of a file. A command that fails is complained about, and the next one follows.
 * An error is one of the file itself.
 */
struct error *script_run(struct session *session, const char *name, FILE *file);

/* Run the script at path. */
struct error *script_run_path(struct session *session, const char *path);

/* The command of that name, or NULL. */
const struct command *command_find(const char *name);

/* True if the word, in place of a core, is the name of a command that stands alone. */
bool command_stands_alone(const char *word);

/* The error for an unknown command; suggests similar names. */
struct error *command_unknown(const char *name);

/*
 * The file that takes the output while redirect is on: as the dump is called, and the command
 * without its switches; behind that a dot and suffix, unless that is NULL. To be freed; NULL if
 * memory is short.
 */
char *redirect_name(const char *dump, const struct command *command, const struct line *line,
		    const char *suffix);
