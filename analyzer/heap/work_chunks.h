/*
 * Allocations in chunks, for loops that read what is in them: each chunk has about as many bytes as
 * any other at most, so that threads end together.
 *
 * A share is so many allocations by id. One of a few bytes is one chunk, of whole allocations. One
 * of more is cut: into runs of whole allocations, and into parts of those that are large, each of a
 * stretch that the dump has. Chunks do not depend on how many threads there are. They go through
 * the shares from the last to the first, and through each in order of address.
 */
#ifndef ANALYZER_HEAP_WORK_CHUNKS_H
#define ANALYZER_HEAP_WORK_CHUNKS_H

#include "analyzer/heap/release.h"

enum {
	SHARE_BITS = 13,
	SHARE = 1 << SHARE_BITS,    /* allocations */
	MOST_SHARE_BYTES = 4 << 20, /* of one that is not cut */
	MOST_CHUNK_BYTES = 1 << 20, /* of a chunk of one that is */
};

static const size_t NOT_CUT = SIZE_MAX;

struct work_chunk {
	allocation_id first, end; /* ids from first on, below end */
	/* What is to be read of first, if that is not all; else it is empty. */
	struct memory_range part;
	size_t number; /* among chunks of shares that are cut; else NOT_CUT */
};

/* What is given is borrowed. */
struct work_chunks {
	const struct image *image;
	const struct allocation_index *index;
	const struct bitmap *sources;
	bool upwards;			 /* take the last first, so in order of address */
	const struct work_chunk *chunks; /* of all shares, empty or not */
	size_t count;
	uint64_t cut_bytes; /* in shares that are cut */
	struct memory memory;
};

/*
 * Only those in sources are there to be read, and not those in pointerless, unless it is NULL: they
 * count as empty.
 */
struct error *work_chunks_init(struct work_chunks *chunks, const struct image *image,
			       const struct allocation_index *index, const struct bitmap *sources,
			       const struct bitmap *pointerless, struct memory_account *account);
void work_chunks_deinit(struct work_chunks *chunks);
DEFINE_DEINIT(work_chunks_deinit, struct work_chunks)

static inline size_t work_chunk_share(const struct work_chunk *chunk)
{
	return chunk->first >> SHARE_BITS;
}

/* Whether the chunk is the first, or the last, of its share. */
static inline bool work_chunk_begins(const struct work_chunks *chunks, size_t chunk)
{
	return chunk == 0 || work_chunk_share(&chunks->chunks[chunk - 1]) !=
				     work_chunk_share(&chunks->chunks[chunk]);
}

static inline bool work_chunk_ends(const struct work_chunks *chunks, size_t chunk)
{
	return chunk + 1 == chunks->count || work_chunk_begins(chunks, chunk + 1);
}

/*
 * The chunk whose turn it is, from 0 on. Of a dump larger than memory, what sources have in those
 * of the next turns is fetched.
 */
const struct work_chunk *work_chunks_take(const struct work_chunks *chunks, size_t turn);

/* The chunk is over, and what is in it is not needed for a while. */
void work_chunk_release(const struct work_chunks *chunks, const struct work_chunk *chunk);

#endif
