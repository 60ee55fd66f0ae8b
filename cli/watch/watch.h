/*
 * heapcore watch: a look into a process before the kernel kills it for memory.
 *
 *	heapcore watch [OPTIONS] -o DIR TARGET
 *
 * Between looks, only files of the kernel are read, a few times a second at most.
 */
#pragma once

#include <argp.h>

extern const struct argp watch_parser; /* for the manual, too */

/* Returns the exit status. */
int watch_main(int count, char **arguments);
