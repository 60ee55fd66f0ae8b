/*
 * heapcore snap: a core of a process that goes on running.
 */
#pragma once

#include "analyzer/capture/snapshot.h"
#include "cli/prompt/session.h"

#include <argp.h>

extern const struct argp snap_parser; /* for the manual, too */

/* heapcore snap [OPTIONS] PID; returns the exit status. */
int snap_main(int count, char **arguments);

/*
 * Take a core of the process into a temporary file that has no name; *ret is its path as long as
 * heapcore runs. To be freed.
 */
struct error *snap_to_analyse(struct session *session, pid_t process, char **ret);

/* Notes on what could not be taken. */
void snap_tell_gaps(struct session *session, const struct core_sizes *sizes);

/* "123", as the number of a process. */
struct error *parse_process(const char *word, pid_t *ret);
