/*
 * Finds what grows from each of several cores to the next, and who holds it.
 *
 * What each core has is counted by pairs of a holder and a kind (struct diff, held). A pair grows
 * if each core has at least one allocation more of it than the one before. Chance must not look
 * like that, so something else has to agree:
 *
 *	held by a class or variable	all that it holds grows, too
 *	unreachable, which leaked	there is more of the kind in the end, by one for each core
 *	held by several, by stacks	all of the kind grows
 *
 * All of a kind includes what has no holder's name, which does not count itself (bounded.h).
 *
 * Of the pairs that do not grow, all of one holder together may, as texts of changing sizes; and of
 * those that are left, all of one kind. What waits for its collector does not count. What hangs on
 * things that grow is added to these:
 *
 *	registry: struct session    -.    grow as one, of registry
 *	struct session: struct note -'
 */
#pragma once

#include "analyzer/diff/diff.h"

enum { LEAST_GROWING_CORES = 3, MOST_EXAMPLES = 16 };

struct growth {
	char *holder; /* owned; empty: various */
	enum census_holder by;
	const char *kind; /* borrowed from the table; empty: various */
	uint64_t size;	  /* of each; 0: of any size */
	uint64_t least;	  /* allocations more, from the core to the next with fewest more */
	uint64_t count;	  /* allocations more, from the oldest to the newest */
	uint64_t bytes;	  /* the same, with what hangs on them */
	bool has_more;	  /* something does */

	/* From growths_find_examples(). */
	allocation_id examples[MOST_EXAMPLES]; /* new in the newest core, if it is one process */
	size_t example_count, passed;	       /* of so many, of which each 1 << skipped counts */
	unsigned int skipped;
	/* From growths_of_holders(). */
	const struct diff_group *whole; /* all of the holder */
	const struct diff_group *most;	/* the kind that most of that is; NULL: none is */
};

struct growths {
	ARRAY(struct growth); /* the most bytes first */
};

void growths_deinit(struct growths *growths);
DEFINE_DEINIT(growths_deinit, struct growths)

/* Find it in the sorted table of pairs; ret is to be deinitialised in any case. */
struct error *growths_find(const struct group_table *held, size_t cores, struct growths *ret);

/* Find examples of the first 32 in the newest core, whose set NEW_SET is made. */
struct error *growths_find_examples(struct analysis *newest, struct growths *growths);

/* Find the holders that grew most, five or limit unless 0, and examples of most of their growth. */
struct error *growths_of_holders(struct analysis *newest, const struct diff *diff, uint64_t limit,
				 struct growths *ret);

/*
 * Name the holder of most examples, to be freed; *ret is NULL if there is none: the object by which
 * a program in a language with such words reaches most of those that it has names for, as
 * "__main__.CACHE", with contents of memory, such as keys, only with_content; or else, unless it is
 * the holder, the static variable that alone holds them, as "CACHE". STAGE_OBJECT_PATHS and
 * STAGE_RETAINED are built.
 */
struct error *growth_place(const struct analysis *newest, const struct growth *growth,
			   bool with_content, char **ret);
