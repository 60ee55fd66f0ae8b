/*
 * Checks commands of clients: they only read, and only the cores that the command line names.
 */
#pragma once

#include "cli/prompt/lexer.h"

/* Older cores, by the names that clients know: those of the files. */
struct older_cores {
	char **paths; /* borrowed */
	size_t count;
};

const char *older_core_name(const struct older_cores *older, size_t number);

/*
 * Refuse what would write files, read others or run programs; put the paths of older cores in the
 * place of their names.
 */
struct error *reading_check(struct line *line, const struct older_cores *older);

/* True if later answers may differ from those before the command. */
bool reading_changes_answers(const struct line *line);
