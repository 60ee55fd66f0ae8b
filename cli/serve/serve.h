/*
 * heapcore serve: a core as pages for a browser, with the analysis in memory.
 *
 *	heapcore serve [OPTIONS] CORE [OLD...]
 */
#pragma once

#include <argp.h>

extern const struct argp serve_parser; /* for the manual, too */

/* Returns the exit status. */
int serve_main(int count, char **arguments);
