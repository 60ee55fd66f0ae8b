/*
 * heapcore receive: takes cores from the kernel, which starts it by core_pattern:
 *
 *	|/usr/bin/heapcore receive -o /var/lib/heapcore %P %e %s
 *
 * It leaves what `heapcore watch` leaves (shelf.h). How large the core is nobody knows beforehand:
 *it is cut where it would take more than it may.
 */
#pragma once

#include <argp.h>

extern const struct argp receive_parser; /* for the manual, too */

/* Returns the exit status. */
int receive_main(int count, char **arguments);
