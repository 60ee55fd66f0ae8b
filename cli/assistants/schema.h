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

/* ---- for tools that are no commands */

/* An object's schema of these, which it takes over; NULL: memory is short. */
json_t *schema_object(json_t *properties, json_t *required);
/* Properties of all tools: 'limit' and 'as'. */
json_t *schema_of_limit(void);
json_t *schema_of_as(void);

/* Models often write "" or null for what they do not give. */
bool schema_is_given(const json_t *value);
/* *ret stays if there is none. */
struct error *schema_read_limit(const json_t *value, uint64_t *ret);
struct error *schema_wrong_type(const char *name, const char *what);
