/*
 * Cores looked into by processes of their own, some at once, each with limits.
 *
 * A core is hostile, and so may take all time and memory: then its process ends, and that is its
 * row. When heapcore itself ends, so do all of these.
 */
#pragma once

#include "cli/fleet/cores.h"
#include "cli/prompt/session.h"

struct worker_limits {
	size_t jobs;	  /* at once */
	uint64_t seconds; /* of one */
	uint64_t memory;  /* bytes of one, beside the core itself; 0: its part of the machine's */
	const char *sysroot, *debug_directory; /* or NULL */
};

/* The number of cores by outcome. */
struct fleet_tally {
	size_t cores, kept, analysed, failed;
};

/* Look into all that the store has not yet; again: also into those that failed. */
struct error *workers_run(struct session *session, struct store *store,
			  const struct fleet_cores *cores, const struct worker_limits *limits,
			  bool again, struct fleet_tally *ret);
