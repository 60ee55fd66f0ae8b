/*
 * Leaks by kind, each with a fingerprint by which it is known again.
 *
 * A leak root's fingerprint is made of what it is and of what hangs on it:
 *
 *	the kinds and sizes of the root; of a ring, those of its members
 *	the kinds of what it leads to, each once
 *
 * How many there are of each does not count, nor do sizes of buffers, for they
 * differ with what a program works on. So do addresses, the order of
 * allocations and the machine. The same leak of another run has the same
 * fingerprint, and so it has in another build, unless the classes changed.
 */
#ifndef ANALYZER_GATE_LEAK_KINDS_H
#define ANALYZER_GATE_LEAK_KINDS_H

#include "analyzer/analysis.h"

struct leak_kind {
	uint64_t fingerprint;
	char *name;    /* what the roots are; owned */
	uint64_t size; /* of the largest root, in bytes */
	uint64_t roots;
	uint64_t allocations, bytes; /* lost with them, shared ones left out */
	uint64_t address;	     /* of the first root, an example */
	bool likely;		     /* not certain: stale words lead to it */
};

struct leak_kinds {
	struct leak_kind *list;
	size_t count;
	/* Reached by several leak roots, and so in none of the kinds. */
	uint64_t shared_allocations, shared_bytes;
};

void leak_kinds_deinit(struct leak_kinds *kinds);
DEFINE_DEINIT(leak_kinds_deinit, struct leak_kinds)

/*
 * Find the kinds of certain leaks, and with likely those of likely ones, too
 * (see likely.h), the most bytes first. ret is zeroed. Builds what it needs.
 */
struct error *leak_kinds_find(struct analysis *analysis, bool likely,
			      struct leak_kinds *ret);

#endif
