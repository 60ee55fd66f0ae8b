/*
 * heapcore soak: what grows while a process does the same again and again.
 *
 *	heapcore soak [OPTIONS] --every COMMAND -- PROGRAM [ARGUMENTS...]
 *	heapcore soak [OPTIONS] --every TIME --pid PID
 *
 *	start, warm up     iterate          iterate          iterate
 *	              snapshot         snapshot         snapshot     ...     gate --growing
 *
 * What is no option of its own is one of the gate's.
 */
#pragma once

#include <argp.h>

extern const struct argp soak_parser; /* for the manual, too */

/* Returns the exit status. */
int soak_main(int count, char **arguments);
