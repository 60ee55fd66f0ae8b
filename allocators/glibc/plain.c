#include "allocators/glibc/walk.h"

#include "allocators/glibc/lists.h"
#include "analyzer/heap/sink.h"

enum {
	MOST_PLAIN = BLOCK_BATCH_GAP, /* bytes of a chunk */
	MOST_BATCH = 1 << 20,	      /* bytes of all, as each may be on the disk */
	MOST_FETCHED = 1 << 9,	      /* bytes for a chunk */
	FETCH_AHEAD = 1 << 13,	      /* bytes: the latency of memory */
	LINE = 64,
};

/* Memory with plain chunks, and those that were found. */
struct batch {
	const uint8_t *bytes; /* of the region; start and end are its own */
	uint64_t start, end;
	uint64_t stop;	   /* chunks here and above are not in it */
	uint64_t odd_bits; /* of headers in this arena */
	struct extent extents[BLOCK_BATCH];
	uint64_t used[BLOCK_BATCH / 64];
	size_t count;
};

static inline uint64_t batch_word(const struct batch *batch, uint64_t address, unsigned int word)
{
	return load_word(batch->bytes + (address - batch->start), word);
}

/* Fetching memory that is not mapped does nothing. */
static inline void fetch_ahead(const struct batch *batch, uint64_t chunk, uint64_t size)
{
	uintptr_t from = (uintptr_t)batch->bytes + (chunk - batch->start) + FETCH_AHEAD;

	for (uint64_t i = 0; i < size && i < MOST_FETCHED; i += LINE)
		__builtin_prefetch((const void *)(from + i));
}

static uint64_t least(uint64_t left, uint64_t right)
{
	return left < right ? left : right;
}

/* The first that the list names from chunk on. */
static uint64_t named_from(const struct number_list *list, size_t *cursor, uint64_t chunk)
{
	glibc_list_has(list, cursor, chunk);
	return *cursor < list->count ? list->items[*cursor] : UINT64_MAX;
}

/* False: the chunk is not plain. */
static bool begin_batch(struct walk *walk, uint64_t chunk, uint64_t stop, struct batch *batch)
{
	struct glibc_heap *heap = walk->heap;
	uint64_t cached, fast;

	if (heap->fast_put_off || chunk - walk->view.start >= walk->view.size)
		return false;
	cached = named_from(&heap->cached, &walk->cached, chunk);
	fast = named_from(&heap->fast, &walk->fast, chunk);
	batch->bytes = walk->view.bytes;
	batch->start = walk->view.start;
	batch->end = walk->view.start + walk->view.size;
	batch->stop = least(least(cached, fast), least(stop, chunk + MOST_BATCH));
	batch->odd_bits = glibc_odd_bits(walk->arena);
	batch->count = 0;
	return true;
}

/* True if the valid chunk needs no special treatment. */
static inline bool is_plain(const struct walk *walk, const struct batch *batch, uint64_t chunk,
			    uint64_t size, unsigned int word)
{
	return chunk < batch->stop && size < MOST_PLAIN &&
	       batch->end - chunk >= size + glibc_header(word) &&
	       chunk + size != walk->arena->top &&
	       !(glibc_may_be_cache(size, word) &&
		 glibc_looks_like_cache(walk->heap, chunk + glibc_header(word)));
}

static inline void put(struct batch *batch, uint64_t distance, uint64_t size, uint64_t used,
		       unsigned int overhead, unsigned int grain)
{
	uint64_t *states = &batch->used[batch->count / 64];

	if (batch->count % 64 == 0)
		*states = 0;
	*states |= used << (batch->count % 64);
	batch->extents[batch->count++] = (struct extent){
		(uint32_t)(distance / grain),
		(uint32_t)(size - overhead),
	};
}

/* Add plain chunks to the batch; returns the first other one. It is compiled for each size of
 * words, overhead, and what chunks are multiples of. */
static inline __attribute__((always_inline)) uint64_t fill(struct walk *walk, struct batch *batch,
							   uint64_t chunk, uint64_t base,
							   unsigned int word, unsigned int overhead,
							   unsigned int grain)
{
	uint64_t header = batch_word(batch, chunk + word, word);

	while (batch->count < BLOCK_BATCH) {
		uint64_t size = header_size(header), next = chunk + size;
		uint64_t above;

		if (!is_plain(walk, batch, chunk, size, word))
			break;
		above = batch_word(batch, next + word, word);
		if (!glibc_is_valid(above, batch->odd_bits, walk->end - next, word))
			break;
		if (!(above & PREV_INUSE)) {
			if (batch_word(batch, next, word) != size)
				break;
			glibc_add_links(walk->links, &walk->view, chunk, size);
		}
		put(batch, chunk + glibc_header(word) - base, size, above & PREV_INUSE, overhead,
		    grain);
		fetch_ahead(batch, chunk, size);
		chunk = next;
		header = above;
	}
	return chunk;
}

static uint64_t fill_batch(struct walk *walk, struct batch *batch, uint64_t chunk, uint64_t base)
{
	if (walk->heap->word == 4)
		return walk->heap->grain == ALIGNMENT
			       ? fill(walk, batch, chunk, base, 4, 4, ALIGNMENT)
			       : fill(walk, batch, chunk, base, 4, 4, 8);
	return walk->heap->overhead == 8 ? fill(walk, batch, chunk, base, 8, 8, ALIGNMENT)
					 : fill(walk, batch, chunk, base, 8, 16, ALIGNMENT);
}

struct error *glibc_walk_plain(struct walk *walk, uint64_t *chunk, uint64_t stop)
{
	unsigned int word = walk->heap->word;
	uint64_t first = *chunk, base, header;
	struct batch batch;

	if (!begin_batch(walk, first, stop, &batch) || first == walk->arena->top ||
	    walk->end - first < walk->heap->minimum || batch.end - first < walk->heap->minimum)
		return NULL;
	header = batch_word(&batch, first + word, word);
	if (!is_valid_header(walk->arena, header, walk->end - first, word) ||
	    !block_sink_base(walk->sink, first + walk->heap->header, &base))
		return NULL;
	*chunk = fill_batch(walk, &batch, first, base);
	if (batch.count == 0)
		return NULL;
	walk->previous_size = batch.extents[batch.count - 1].size;
	walk->previous = base + (uint64_t)walk->heap->grain * batch.extents[batch.count - 1].start;
	return block_sink_add_many(walk->sink, batch.extents, batch.used, batch.count);
}
