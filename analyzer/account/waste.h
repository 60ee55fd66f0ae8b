/*
 * Finds wasted memory in used allocations.
 *
 * No byte of an allocation counts twice. Its slack and spare room lie behind or around its
 * contents; contents with spare room between them are not read. The contents are zeros, if
 * all of them are; else they are a duplicate, if an allocation before it holds the same; else pages
 * at their end may be zeros.
 */
#pragma once

#include "analyzer/account/duplicates.h"
#include "analyzer/kinds/tally.h"

enum waste_kind {
	WASTE_DUPLICATES, /* equal contents beyond the first */
	WASTE_ZEROS,	  /* contents that are all zero, or pages at their end */
	WASTE_SPARE,	  /* capacity of containers that is not in use */
	WASTE_SLACK,	  /* bytes beyond the size asked for */
	WASTE_KINDS,
};

/* Contents of fewer bytes are no duplicates: most are so by chance. */
enum { LEAST_DUPLICATE = 16 };

/* The bytes that one kind of waste takes in allocations of one type. */
struct waste_row {
	char *name;    /* of the type; NULL: nothing is known of it */
	uint64_t size; /* of the allocations then, else 0 */
	enum waste_kind kind;
	struct set_total sum;
};

struct waste {
	struct set_total looked_at; /* the allocations, in all */
	struct set_total sums[WASTE_KINDS];
	struct set_total absent;      /* whose contents the core lacks */
	struct set_total known_spare; /* of which spare room is known */
	struct set_total known_slack; /* of which it is known what was asked */
	struct duplicates duplicates;
	struct bitmap zeros;	/* allocations whose contents are all zero */
	struct waste_row *rows; /* most bytes first */
	size_t row_count;
};

enum waste_depth {
	WASTE_SETS, /* only what is a duplicate, or zero */
	WASTE_ROWS,
};

/*
 * Look at the members that are used; most groups of duplicates are kept. ret is all zeros, and to
 * be deinitialised even after an error. Builds what it needs.
 */
struct error *waste_find(struct analysis *analysis, const struct bitmap *members,
			 enum waste_depth depth, size_t most, struct waste *ret);
void waste_deinit(struct waste *waste);
DEFINE_DEINIT(waste_deinit, struct waste)
