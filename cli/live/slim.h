/*
 * heapcore slim: a core without contents.
 */
#pragma once

#include "analyzer/slim/slim.h"
#include "cli/prompt/session.h"

#include <argp.h>

extern const struct argp slim_parser; /* for the manual, too */

/* heapcore slim [OPTIONS] CORE; returns the exit status. */
int slim_main(int count, char **arguments);

/* Write a slim core of the one that the session has open, with its progress. */
struct error *slim_core(struct session *session, struct slim_options options,
			struct slim_sizes *ret);
