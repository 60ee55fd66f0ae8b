/*
 * Words that stand for the address of an allocation without being it, such as an interpreter's
 * integer, or a pointer with a tag in its highest bits.
 *
 * No reference is made of such a word. Of allocations that nothing refers to, one go over the
 * memory in use finds those that a disguised address leads to. What these refer to is in use as
 * well, then, and is looked at in turn.
 *
 * The address must be exactly where an allocation begins (or ends, for one past the end), so a word
 * that means something else is hardly ever taken for one.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/graph/disguise.h"
#include "analyzer/graph/graph.h"
#include "analyzer/graph/roots.h"

/* For each allocation found, the first place with its disguised address. */
struct disguises {
	ARRAY(struct disguised) list; /* in the order they were found */
	struct bitmap reached;	      /* of those wanted: they, and what they lead to */
	uint64_t words;		      /* that were looked at */
};

struct error *disguises_find(const struct disguises_input *input, struct disguises *ret);

/*
 * Set *ret_excluded if certainly none of a few allocations is found. wanted has these; in_use has
 * everything used, because disguised pointers may lead on from anywhere. It takes a fraction of the
 * time.
 */
struct error *disguises_exclude(const struct disguises_input *input, bool *ret_excluded);

/*
 * The certainty of an address found in disguise: if all words were random, one in this many cores
 * would have it by chance.
 */
uint64_t disguises_odds(const struct disguises *disguises, uint64_t address);

/*
 * Drop what may well be chance. A disguise counts if a thousand times as many are found as random
 * words would give for all that is wanted; what has other evidence, as offsets, counts anyway.
 */
enum { LEAST_ODDS = 1000 };

struct error *disguises_drop_chance(const struct disguises_input *input,
				    struct disguises *disguises);

/* Put them in order of target, for disguises_of(). */
void disguises_sort(struct disguises *disguises);

/* The one that leads to the allocation, or NULL. */
const struct disguised *disguises_of(const struct disguises *disguises, allocation_id target);
void disguises_deinit(struct disguises *disguises);
DEFINE_DEINIT(disguises_deinit, struct disguises)

static inline const struct disguised *disguised_at(const struct disguises *disguises, size_t number)
{
	return disguises->list.items + number;
}
