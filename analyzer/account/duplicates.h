/*
 * Finds equal contents among many.
 *
 * Each allocation is a number of 8 bytes: the upper half of its contents' hash, then its id.
 * Threads add numbers to blocks by the highest byte. Of each such part, a small bitmap of hashes
 * leaves out the numbers whose hash no other one has; the rest are sorted, which brings equal
 * hashes together, the lowest address first. Contents of equal hash are compared byte by byte, so a
 * result is never wrong. Of more than MOST_COLLISIONS different contents with one hash, as only a
 * forged dump has, some are missed.
 */
#pragma once

#include "analyzer/account/extents.h"

enum { MOST_COLLISIONS = 64 };

/* Several allocations with the same contents. */
struct duplicate_group {
	allocation_id first; /* of which the others are copies */
	uint64_t copies;     /* the first among them */
	uint64_t size;	     /* of the contents of each, in bytes */
};

/* Bytes beyond the first copy. */
static inline uint64_t duplicate_bytes(const struct duplicate_group *group)
{
	return (group->copies - 1) * group->size;
}

struct duplicates {
	struct bitmap copies; /* all but the first of each group */
	uint64_t group_count;
	/* The groups of the most bytes, most first. */
	struct duplicate_group *largest;
	size_t largest_count;
};

struct duplicate_finder;

/*
 * Prepare for at most count contents, added by that many threads. Keep the most largest groups.
 * Borrows the analysis.
 */
struct error *duplicate_finder_create(struct analysis *analysis, size_t count, unsigned int threads,
				      size_t most, struct duplicate_finder **ret);
void duplicate_finder_destroy(struct duplicate_finder *finder);
DEFINE_CLEANUP(duplicate_finder_destroy, struct duplicate_finder *)

/* Add the contents of an allocation; thread is below threads. */
void duplicate_finder_add(struct duplicate_finder *finder, unsigned int thread, uint64_t hash,
			  allocation_id id);

/* Compare all that were added. ret->copies is empty at first; the rest of ret is zero. */
struct error *duplicate_finder_finish(struct duplicate_finder *finder, struct duplicates *ret);
void duplicates_deinit(struct duplicates *duplicates);
DEFINE_DEINIT(duplicates_deinit, struct duplicates)
