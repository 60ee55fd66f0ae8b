/*
 * heapcore slim: a core without contents.
 */
#pragma once

#include <argp.h>

extern const struct argp slim_parser; /* for the manual, too */

/* heapcore slim [OPTIONS] CORE; returns the exit status. */
int slim_main(int count, char **arguments);
