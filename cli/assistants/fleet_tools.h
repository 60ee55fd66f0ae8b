/*
 * Tools that ask the file of a fleet, as `heapcore fleet` does. They need no core, and read only.
 */
#pragma once

#include "cli/assistants/server.h"

struct fleet_tool {
	const char *name;
	const char *word; /* of `heapcore fleet` */
	const char *text;
	const char *words[2]; /* its own properties, which are required; or NULL */
};

/* NULL: there is none. */
const struct fleet_tool *fleet_tool_at(size_t number);
const struct fleet_tool *fleet_tool_find(const char *name);

/* NULL: memory is short. */
json_t *fleet_tool_schema(const struct fleet_tool *tool);
char *fleet_tool_description(const struct fleet_tool *tool);

/* Errors are of the arguments; others are part of the answer. */
struct error *fleet_tool_call(struct server *server, const struct fleet_tool *tool,
			      const json_t *arguments, struct answer *answer);
