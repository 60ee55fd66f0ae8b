/*
 * Where memory accumulates: the owners, few and large, that a person should look at first.
 *
 * From each root, and from each kind that several roots hold, the way goes down as long as one kind
 * holds nearly all of the rest. Where it stops, much hangs on one kind in one place.
 */
#ifndef ANALYZER_OWNERS_SUSPECTS_H
#define ANALYZER_OWNERS_SUSPECTS_H

#include "analyzer/owners/frames.h"

enum { MOST_SUSPECTS = 8 };

struct suspect {
	const struct owner_frame *owner; /* where the way began: a root, or what several hold */
	const struct owner_frame *place; /* where it stopped; may be the same */
};

/*
 * Those that retain at least a twentieth of what the whole does, most first; returns how many. They
 * live as long as the frames, which are those of one measure.
 */
size_t suspects_find(const struct frames *frames, enum owner_measure measure,
		     struct suspect ret[static MOST_SUSPECTS]);

#endif
