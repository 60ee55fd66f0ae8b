/*
 * Leaks by kind, each with a fingerprint by which it is known again.
 *
 * A leak root's fingerprint is made of what it is and of what hangs on it:
 *
 *	the kinds and sizes of the root; of a cycle, those of its members
 *	the kinds of what it leads to, each once, less those of the root
 *
 * How many there are of each does not count, nor do the sizes of buffers. Allocations of which
 * nothing is known count only as roots: whether a note was attached to an order is up to the data,
 * and what a buffer leads to may be left over from what was in its memory before. Addresses, the
 * order of allocations and the machine do not count either. So the same leak of another run has the
 * same fingerprint, and so it has in another build, unless the classes changed.
 */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/base/array.h"

/* The state of a leak, after suppressions and a baseline. */
enum leak_state { LEAK_NEW, LEAK_KNOWN, LEAK_MORE, LEAK_SUPPRESSED };

struct leak_kind {
	uint64_t fingerprint;
	char *name;		/* kind of the roots; owned */
	const char *full_name;	/* of a class, as the compiler wrote it */
	const char *module;	/* the file that the class is of */
	uint64_t size;		/* of the largest root, in bytes */
	uint64_t smallest_size; /* of a root */
	uint64_t roots;
	uint64_t allocations, bytes; /* lost with them, shared ones left out */
	uint64_t address;	     /* of the first root, an example */
	uint64_t likely_roots;	     /* to which stale or disguised words lead */
	bool likely;		     /* none is certain */
	char *held;		     /* of a likely one: where the words are; owned, or NULL */
	char *holder;		     /* the structure that held them, owned, or NULL */
	const char *holder_module;   /* module of the holder */

	/* Types of an unrecognized leak by debug information, from leak_kinds_find_types(). */
	const char *type;     /* of the example; NULL: not known; lives as long as the analysis */
	char *type_reason;    /* as "40 others of its size, as conns"; owned, or NULL */
	uint64_t typed_roots; /* that are of that type */

	/* The allocating function of the example, see allocated_by_find(); owned, or NULL. */
	char *allocated_by;
	/*
	 * By the calls of a second run: a source line, "/src/server.c:5", and all calls; owned, or
	 * NULL. So many of the calls that they tell the leak from others are allocated_by.
	 */
	char *source, *calls;

	/* A library or interpreter known to leak it, and the cause; or NULL. */
	const char *known_owner, *known_cause;

	enum leak_state state;
	bool is_allowed; /* by the baseline, so many roots: */
	uint64_t allowed;
	const char *rule; /* that suppresses it, or known_cause; borrowed */
};

/* The leaks of one verdict, and which kind each root is of. */
struct leak_side {
	const struct leaks *leaks; /* borrowed */
	const struct bitmap *lost; /* borrowed */
	ARRAY(uint32_t) kinds;	   /* by number of the root */
};

/* Leaks that are likely held by disguised pointers (likely_held.h) are not certain. */
enum leak_choice {
	LEAKS_ALL, /* as certain ones */
	LEAKS_CERTAIN,
	LEAKS_AND_LIKELY,
};

struct leak_kinds {
	struct leak_kind *list;
	size_t count;
	struct leak_side certain, likely;	    /* leaks NULL: not looked for */
	struct leaks *certain_leaks, *likely_leaks; /* owned, or NULL */
	struct bitmap certain_lost, likely_lost;    /* or no words */
};

/* The fingerprint as it is written everywhere; returns the buffer. */
enum { FINGERPRINT_SIZE = 17 };
const char *fingerprint_text(uint64_t fingerprint, char buffer[static FINGERPRINT_SIZE]);

void leak_kinds_deinit(struct leak_kinds *kinds);
DEFINE_DEINIT(leak_kinds_deinit, struct leak_kinds)

/*
 * Find the kinds of certain leaks, the most bytes first, and those of likely leaks behind them:
 * these are anchored, but only by stale words, or held in disguise. ret is zeroed. Builds what it
 * needs.
 */
struct error *leak_kinds_find(struct analysis *analysis, enum leak_choice choice,
			      struct leak_kinds *ret);

/*
 * Find the types of unrecognized leaks that count, and who allocated those that have a type or
 * class. The first root that has a type becomes its
 * kind's example. Fingerprints and names do not depend on types: they stay the same in a stripped
 * program. Builds what it needs, and nothing if no such leak counts.
 */
struct error *leak_kinds_find_types(struct analysis *analysis, struct leak_kinds *kinds);

/*
 * The label, as "unrecognized allocation (probably struct conn)"; to be freed, NULL if memory is
 * short.
 */
char *leak_kind_label(const struct leak_kind *kind);

/* The total that several leak roots reach, which is in none of the kinds. */
struct set_total leak_kinds_shared(const struct leak_kinds *kinds);

/* "new", "known", "more" or "suppressed"; whether a gate counts leaks of that state. */
const char *leak_state_name(enum leak_state state);
bool leak_counts(const struct leak_kind *kind);

/* True if an interpreter or a library is known to leak it, so that it does not count. */
bool leak_is_known(const struct leak_kind *kind);

/*
 * How much of a kind counts: all of a new one; of one with more roots than the baseline allows, the
 * share of the roots that are too many.
 */
struct set_total leak_counted(const struct leak_kind *kind);

/*
 * Count the leaks of all kinds that count, and what only their roots share. Does not change the
 * kinds.
 */
struct error *leak_kinds_count(struct analysis *analysis, const struct leak_kinds *kinds,
			       struct set_total *ret);
