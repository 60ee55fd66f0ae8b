/*
 * Cores looked into by processes of their own, some at once, each with limits.
 *
 * A core is hostile, and so may take all time and memory: then its process ends, and that is its
 * row. When heapcore itself ends, so do all of these.
 */
#pragma once

#include "cli/fleet/cores.h"
#include "cli/prompt/session.h"

enum { FAILURES_NAMED = 5 };

struct worker_limits {
	size_t jobs;	  /* at once */
	uint64_t seconds; /* of one */
	uint64_t memory;  /* bytes of one, beside the core itself; 0: its part of the machine's */
	const char *sysroot, *debug_directory; /* or NULL */
	/* A command that writes the core to its output, where {} is the core's name; or NULL. */
	const char *fetch;
	FILE *log;    /* a JSON object a core; or NULL */
	bool holders; /* also find who holds memory */
};

/* The number of cores by outcome. */
struct fleet_tally {
	size_t cores, kept, analysed, failed;
	char *failures; /* the first ones' paths and errors; owned */
};

/*
 * Look into all that the store has not yet, or that are to be analysed anew. Several processes that
 * do so with the same file share the cores.
 */
struct error *workers_run(struct session *session, struct store *store,
			  const struct fleet_cores *cores, const struct worker_limits *limits,
			  const struct fleet_anew *anew, struct fleet_tally *ret);
