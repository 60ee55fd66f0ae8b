/*
 * Checks commands of clients: they only read, and only the cores that the command line names.
 */
#pragma once

#include "cli/command.h"
#include "cli/prompt/lexer.h"

/* Clients know older cores by the names of the files. */
const char *older_core_name(const struct word_list *older, size_t number);

/*
 * Refuse what would write files, read others or run programs; put the paths of older cores in the
 * place of their names.
 */
struct error *reading_check(struct line *line, const struct word_list *older);

/* True if later answers may differ from those before the command. */
bool reading_changes_answers(const struct line *line);
