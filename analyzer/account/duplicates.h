/*
 * Which of many contents are equal.
 *
 * Each is known by a number made of part of its hash and of its allocation. So many numbers sorted
 * in place bring those together that may be equal, the one at the lowest address first, and cost 8
 * bytes each. What the hashes say is then checked byte by byte, and so what is found is never
 * wrong; of more than MOST_COLLISIONS different contents of one hash, as only a dump made for it
 * has, some are missed.
 */
#ifndef ANALYZER_ACCOUNT_DUPLICATES_H
#define ANALYZER_ACCOUNT_DUPLICATES_H

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

static inline uint64_t content_number(uint64_t hash, allocation_id id)
{
	return (hash & ~(uint64_t)UINT32_MAX) | id;
}

struct duplicates {
	struct bitmap copies; /* all but the first of each group */
	uint64_t group_count;
	/* The groups of the most bytes, most first. */
	struct duplicate_group *largest;
	size_t largest_count;
};

/*
 * Find them among the contents by those numbers, which are sorted; most groups are kept. ret is all
 * zeros, and to be deinitialised even after an error.
 */
struct error *duplicates_find(struct analysis *analysis, uint64_t *numbers, size_t count,
			      size_t most, struct duplicates *ret);
void duplicates_deinit(struct duplicates *duplicates);
DEFINE_DEINIT(duplicates_deinit, struct duplicates)

#endif
