/*
 * The allocations of the oldest core, to be found again in others of the same process.
 */
#ifndef ANALYZER_DIFF_OLDEST_H
#define ANALYZER_DIFF_OLDEST_H

#include "analyzer/diff/group_table.h"

struct oldest {
	struct memory list; /* struct entry, by start */
	size_t count;
	struct bitmap everywhere; /* in all cores so far */
};

void oldest_deinit(struct oldest *oldest);

/* A core, as it is matched with them; all borrowed. */
struct matching {
	struct oldest *oldest;
	const struct analysis *analysis;
	const uint32_t *numbers; /* of groups, by id, plus 1; 0: of none */
	struct group_table *groups;
	struct progress *progress;
};

/* Make them of the oldest core, which the matching is with. */
struct error *oldest_keep(struct matching *matching);

/* Take those out of everywhere that are not in the core. */
struct error *oldest_narrow(struct matching *matching);

/*
 * The core is the newest: set what is not in the oldest in added, what is in all in survived, and
 * count both and what is gone by group.
 */
struct error *oldest_finish(struct matching *matching, struct bitmap *added,
			    struct bitmap *survived);

#endif
