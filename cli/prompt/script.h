/*
 * Commands from a file, one a line.
 */
#ifndef CLI_PROMPT_SCRIPT_H
#define CLI_PROMPT_SCRIPT_H

#include "cli/prompt/session.h"

#include <stdio.h>

/* Where in a script we are, for messages. */
struct script {
	const char *name;
	size_t line;	       /* where the command begins */
	struct script *caller; /* that sourced it, or NULL */
};

/*
 * Run the commands of a file. A command that fails is complained about, and the next one follows.
 * An error is one of the file itself.
 */
struct error *script_run(struct session *session, const char *name, FILE *file);

/* The same with the file at path. */
struct error *script_run_path(struct session *session, const char *path);

#endif
