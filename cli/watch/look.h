/*
 * One look of `heapcore watch` into a process: its core, the reason, and the answers.
 *
 * The process must not be killed by that. A clone's pages are copied as the process writes to them,
 * and count against its limit: without room for a quarter of it, or if the clone was killed for
 * want of memory, the process is stopped instead while its memory is copied (snapshot.h). The copy
 * is heapcore's, which counts against the same limit only if heapcore runs in the same group.
 */
#pragma once

#include "cli/watch/keeping.h"
#include "cli/watch/target.h"

struct look {
	pid_t process;
	const char *cause;
	const char *meter;   /* what limits the memory */
	uint64_t used, most; /* bytes; most is 0 without a limit */
	double seconds;	     /* until most is used, as far as can be told; below 0: unknown */
	const struct group_limit *limit; /* of its group; or NULL */
};

/*
 * Why a core must not be written to the folder: it would be in memory that counts against that
 * limit. NULL: it may.
 */
struct error *look_obstacle(const char *folder, const struct group_limit *limit);

struct error *look_into(struct session *session, const struct keeping *keeping,
			const struct look *look);
