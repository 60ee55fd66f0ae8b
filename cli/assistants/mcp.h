/*
 * heapcore mcp: cores for assistants in editors, by the Model Context Protocol.
 *
 *	heapcore mcp [OPTIONS] [CORE | DIR]...
 */
#pragma once

#include <argp.h>

extern const struct argp mcp_parser; /* for the manual, too */

/* Returns the exit status. */
int mcp_main(int count, char **arguments);
