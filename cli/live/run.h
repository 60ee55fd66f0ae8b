/*
 * heapcore run: a program is run, and its memory looked into at its end.
 *
 *	heapcore run [OPTIONS] -- PROGRAM [ARGUMENTS...]
 *
 * What is no option of its own is one of the gate's.
 */
#pragma once

#include <argp.h>

extern const struct argp run_parser; /* for the manual, too */

/* Returns the exit status. */
int run_main(int count, char **arguments);
