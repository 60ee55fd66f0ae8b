/*
 * Allocations in turns, for loops that read what is in them: each turn has about as many bytes as
 * any other at most, so that threads end together.
 *
 * A share is so many allocations by id. One of a few bytes is one turn, of whole allocations. One
 * of more is cut: into runs of whole allocations, and into parts of those that are large, each of a
 * stretch that the dump has. Turns do not depend on how many threads there are. They go through the
 * shares from the last to the first, and through each in order of address: what was walked last is
 * read first, as of a dump larger than memory that is what is still there.
 */
#ifndef ANALYZER_HEAP_TURNS_H
#define ANALYZER_HEAP_TURNS_H

#include "analyzer/heap/pass.h"

enum {
	SHARE_BITS = 13,
	SHARE = 1 << SHARE_BITS,    /* allocations */
	MOST_SHARE_BYTES = 4 << 20, /* of one that is not cut */
	MOST_TURN_BYTES = 1 << 20,  /* of a turn of one that is */
};

static const size_t NOT_CUT = SIZE_MAX;

struct allocation_turn {
	allocation_id first, end; /* ids from first on, below end */
	/* What is to be read of first, if that is not all; else it is empty. */
	struct memory_range part;
	size_t number; /* among turns of shares that are cut; else NOT_CUT */
};

struct allocation_turns {
	const struct allocation_turn *turns; /* of all shares, empty or not */
	size_t count;
	uint64_t cut_bytes; /* in shares that are cut */
	struct memory memory;
};

/*
 * Only those in sources are there to be read, and not those in pointerless, unless it is NULL: they
 * count as empty.
 */
struct error *allocation_turns_init(struct allocation_turns *turns, const struct image *image,
				    const struct allocation_index *index,
				    const struct bitmap *sources, const struct bitmap *pointerless,
				    struct memory_account *account);
void allocation_turns_deinit(struct allocation_turns *turns);
DEFINE_DEINIT(allocation_turns_deinit, struct allocation_turns)

static inline size_t allocation_turn_share(const struct allocation_turn *turn)
{
	return turn->first >> SHARE_BITS;
}

/* Whether the turn is the first, or the last, of its share. */
static inline bool allocation_turn_begins(const struct allocation_turns *turns, size_t turn)
{
	return turn == 0 || allocation_turn_share(&turns->turns[turn - 1]) !=
				    allocation_turn_share(&turns->turns[turn]);
}

static inline bool allocation_turn_ends(const struct allocation_turns *turns, size_t turn)
{
	return turn + 1 == turns->count || allocation_turn_begins(turns, turn + 1);
}

/* The turn is over, and what is in it is not needed for a while. */
static inline void allocation_turn_pass(const struct allocation_turn *turn,
					const struct image *image,
					const struct allocation_index *index)
{
	if (turn->part.start < turn->part.end)
		image_pass(image, turn->part.start, turn->part.end);
	else
		allocations_pass(image, index, turn->first, turn->end);
}

#endif
