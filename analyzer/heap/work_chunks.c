#include "analyzer/heap/work_chunks.h"

struct cutter {
	struct work_chunks *chunks;
	const struct image *image;
	const struct allocation_index *index;
	const struct bitmap *sources, *pointerless;
	size_t hint;
	size_t cut_count; /* chunks of shares that are cut */
	allocation_id run_first;
	uint64_t run_bytes;
};

static struct error *add_cut(struct cutter *cutter, allocation_id first, allocation_id end,
			     struct memory_range part, uint64_t bytes)
{
	cutter->chunks->cut_bytes += bytes;
	return array_append(cutter->chunks,
			    (struct work_chunk){ first, end, part, cutter->cut_count++ });
}

/* The run of whole allocations ends below this one. */
static struct error *end_run(struct cutter *cutter, allocation_id end)
{
	if (cutter->run_first < end)
		TRY(add_cut(cutter, cutter->run_first, end, (struct memory_range){ 0, 0 },
			    cutter->run_bytes));
	cutter->run_first = end;
	cutter->run_bytes = 0;
	return NULL;
}

/* The next part at or above start that the dump has; empty if there is none. */
static struct memory_range find_part(const struct cutter *cutter, struct memory_range range,
				     uint64_t start)
{
	while (start < range.end) {
		const struct region *region = image_find(cutter->image, start);
		uint64_t end = region && region->end < range.end ? region->end : range.end;

		/* The first is read even if it is a hole of the dump's file. */
		if (region && region->bytes && start != range.start)
			start = image_next_data(cutter->image, start);
		if (region && region->bytes && start < end)
			return (struct memory_range){ start, end - start > MOST_CHUNK_BYTES
								     ? start + MOST_CHUNK_BYTES
								     : end };
		start = end;
	}
	return (struct memory_range){ range.end, range.end };
}

static struct error *cut_allocation(struct cutter *cutter, allocation_id id,
				    struct memory_range range)
{
	struct memory_range part = find_part(cutter, range, range.start);

	TRY(end_run(cutter, id));
	while (part.start < part.end) {
		TRY(add_cut(cutter, id, id + 1, part, part.end - part.start));
		part = find_part(cutter, range, part.end);
	}
	cutter->run_first = id + 1;
	return NULL;
}

static bool is_read(const struct cutter *cutter, allocation_id id)
{
	return bitmap_get(cutter->sources, id) &&
	       !(cutter->pointerless && bitmap_get(cutter->pointerless, id));
}

static struct error *cut_share(struct cutter *cutter, allocation_id first, allocation_id end)
{
	cutter->run_first = first;
	cutter->run_bytes = 0;
	for (allocation_id id = first; id < end; id++) {
		struct memory_range range;
		uint64_t size;

		if (!is_read(cutter, id))
			continue;
		range = allocation_range_near(cutter->index, id, &cutter->hint);
		size = range.end - range.start;
		if (size > MOST_CHUNK_BYTES) {
			TRY(cut_allocation(cutter, id, range));
			continue;
		}
		if (cutter->run_bytes + size > MOST_CHUNK_BYTES)
			TRY(end_run(cutter, id));
		cutter->run_bytes += size;
	}
	return end_run(cutter, end);
}

/* Make chunks of the share. */
static struct error *take_share(struct cutter *cutter, allocation_id first, allocation_id end)
{
	uint64_t start = allocation_start(cutter->index, first);
	struct memory_range last = allocation_range_near(cutter->index, end - 1, &cutter->hint);

	return last.end - start > MOST_SHARE_BYTES
		       ? cut_share(cutter, first, end)
		       : array_append(cutter->chunks,
				      (struct work_chunk){ first, end, { 0, 0 }, NOT_CUT });
}

struct error *work_chunks_init(struct work_chunks *chunks, const struct image *image,
			       const struct allocation_index *index, const struct bitmap *sources,
			       const struct bitmap *pointerless, struct memory_account *account)
{
	struct cutter cutter = {
		.chunks = chunks,
		.image = image,
		.index = index,
		.sources = sources,
		.pointerless = pointerless,
	};
	size_t count = allocation_count(index);

	*chunks = (struct work_chunks){
		.memory.account = account,
		.image = image,
		.index = index,
		.sources = sources,
	};
	for (size_t end = count; end > 0; end = (end - 1) & ~((size_t)SHARE - 1))
		TRY(take_share(&cutter, (allocation_id)((end - 1) & ~((size_t)SHARE - 1)),
			       (allocation_id)end));
	return NULL;
}

static const struct work_chunk *find_chunk(const struct work_chunks *chunks, size_t turn)
{
	return &chunks->items[chunks->upwards ? chunks->count - 1 - turn : turn];
}

/* Fetch what the sources in the chunk hold, along with what is between any two near each other. */
static void fetch_chunk(const struct work_chunks *chunks, const struct work_chunk *chunk)
{
	enum { ONE_IN = 16, NEAR = 128 << 10 };
	struct memory_range span = chunk->part;
	size_t id = span.start < span.end ? chunk->end : bitmap_next(chunks->sources, chunk->first);

	for (size_t hint = 0; id < chunk->end; id = bitmap_next(chunks->sources, id + ONE_IN)) {
		struct memory_range range =
			allocation_range_near(chunks->index, (allocation_id)id, &hint);

		if (range.start - span.end > NEAR) {
			image_fetch(chunks->image, span.start, span.end);
			span.start = range.start;
		}
		span.end = range.end;
	}
	image_fetch(chunks->image, span.start, span.end);
}

const struct work_chunk *work_chunks_take(const struct work_chunks *chunks, size_t turn)
{
	enum { AHEAD = 16 };
	size_t next = turn > 0 ? turn + AHEAD : 1;

	if (!image_fits(chunks->image))
		for (; next <= turn + AHEAD && next < chunks->count; next++)
			fetch_chunk(chunks, find_chunk(chunks, next));
	return find_chunk(chunks, turn);
}

void work_chunk_release(const struct work_chunks *chunks, const struct work_chunk *chunk)
{
	if (chunk->part.start < chunk->part.end)
		image_release(chunks->image, chunk->part.start, chunk->part.end);
	else
		allocations_release(chunks->image, chunks->index, chunk->first, chunk->end);
}
