/*
 * Allocations in chunks of work, for loops that read their contents: no chunk has many bytes more
 * than another, so that threads end together.
 *
 * A share is SHARE allocations by id. A share of a few bytes is one chunk of whole allocations.
 * Others are cut: into runs of whole allocations, and large allocations into parts, each of a
 * stretch that the dump has. Chunks do not depend on the number of threads. They go through the
 * shares from the last to the first, and through each share by address.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/heap/index.h"

enum {
	SHARE_BITS = 13,
	SHARE = 1 << SHARE_BITS,    /* allocations */
	MOST_SHARE_BYTES = 4 << 20, /* of one that is not cut */
	MOST_CHUNK_BYTES = 1 << 20, /* of a chunk of one that is */
};

static const size_t NOT_CUT = SIZE_MAX;

struct work_chunk {
	allocation_id first, end; /* ids from first on, below end */
	/* The part of first to read, if not all of it; else empty. */
	struct memory_range part;
	size_t number; /* among chunks of shares that are cut; else NOT_CUT */
};

/* Borrows all but the chunks. */
struct work_chunks {
	ARRAY(struct work_chunk); /* of all shares, empty or not */
	const struct image *image;
	const struct allocation_index *index;
	const struct bitmap *sources;
	bool upwards;	    /* take the last first, so in order of address */
	uint64_t cut_bytes; /* in shares that are cut */
};

/*
 * Only sources are read, and of these not the pointerless, unless this is NULL: others count as
 * empty. array_release() releases the chunks.
 */
struct error *work_chunks_init(struct work_chunks *chunks, const struct image *image,
			       const struct allocation_index *index, const struct bitmap *sources,
			       const struct bitmap *pointerless, struct memory_account *account);

static inline size_t work_chunk_share(const struct work_chunk *chunk)
{
	return chunk->first >> SHARE_BITS;
}

/* True if the chunk is the first, or the last, of its share. */
static inline bool work_chunk_begins(const struct work_chunks *chunks, size_t chunk)
{
	return chunk == 0 || work_chunk_share(&chunks->items[chunk - 1]) !=
				     work_chunk_share(&chunks->items[chunk]);
}

static inline bool work_chunk_ends(const struct work_chunks *chunks, size_t chunk)
{
	return chunk + 1 == chunks->count || work_chunk_begins(chunks, chunk + 1);
}

/*
 * The chunk of the turn, from 0 on. If the dump is larger than memory, fetches what sources have in
 * the chunks of the next turns.
 */
const struct work_chunk *work_chunks_take(const struct work_chunks *chunks, size_t turn);

/* The chunk is done, and its memory not needed for a while. */
void work_chunk_release(const struct work_chunks *chunks, const struct work_chunk *chunk);
