/*
 * A core of a process that runs, and goes on running.
 */
#ifndef ANALYZER_CAPTURE_SNAPSHOT_H
#define ANALYZER_CAPTURE_SNAPSHOT_H

#include "analyzer/capture/core.h"

struct snapshot {
	struct core_sizes sizes;
	double stopped; /* seconds that the process stood still */
};

struct error *snapshot_take(pid_t process, const struct core_options *options,
			    struct snapshot *ret);

#endif
