/*
 * A command as a tool: its words and switches as the properties of a JSON object, and such an
 * object as words again. Both are made from struct command, so no tool is described twice.
 *
 * What a command's words are called becomes a property: of "ADDRESS | SET [KIND]", 'address', 'set'
 * and 'kind'. Those outside of brackets are required, unless there is a choice.
 */
#pragma once

#include "cli/assistants/folders.h"
#include "cli/command.h"
#include "cli/prompt/lexer.h"

#include <jansson.h>

enum { USUAL_ROWS = 100, MOST_ROWS = 1000 };

/* Its schema, and what it does; NULL: memory is short. command NULL: 'open', which is none. */
json_t *schema_of_command(const struct command *command);
char *schema_description(const struct command *command);

/* The command with the words that the arguments ask for, as a line, and the limit among them. */
struct error *schema_read(const struct command *command, const json_t *arguments,
			  const struct folders *folders, struct line *ret, uint64_t *ret_rows);
