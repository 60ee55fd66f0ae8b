#include "analyzer/query/search.h"

#include "analyzer/base/array.h"
#include "analyzer/base/parallel.h"

#include <string.h>

enum { CHUNK_BYTES = 4 << 20 };

/* Places where a hit may begin: [start, end), in one region. */
struct chunk {
	uint64_t start, end;
	uint64_t known;	       /* the end of the region */
	const uint8_t *bytes;  /* from start to known */
	uint64_t count, first; /* of its hits, and where they go */
};

struct searcher {
	const struct image *image;
	const struct search *search;
	struct progress *progress;
	ARRAY(struct chunk) chunks;
	uint64_t *addresses; /* of the hits that are kept; NULL: just count */
	size_t kept;
};

/* Takes a chunk's hits. */
struct sink {
	const struct searcher *searcher;
	uint64_t count;
	size_t next;
};

static inline void add_hit(struct sink *sink, uint64_t address)
{
	const struct search *search = sink->searcher->search;

	if (search->skips && search->skips(search->data, address))
		return;
	sink->count++;
	if (sink->searcher->addresses && sink->next < sink->searcher->kept)
		sink->searcher->addresses[sink->next++] = address;
}

/* How many bytes hits of that size may take that begin in the chunk. */
static uint64_t reach(const struct chunk *chunk, uint64_t size)
{
	uint64_t known = chunk->known - chunk->start;
	uint64_t wanted = chunk->end - chunk->start + size - 1;

	return known < wanted ? known : wanted;
}

static void scan_words(const struct chunk *chunk, struct sink *sink)
{
	const struct search *search = sink->searcher->search;
	uint64_t first = search->first, span = search->span, word;
	uint64_t size = reach(chunk, sizeof(word));

	for (uint64_t i = -chunk->start % 8; i + 8 <= size; i += 8) {
		memcpy(&word, chunk->bytes + i, sizeof(word));
		if (word - first < span)
			add_hit(sink, chunk->start + i);
	}
}

static void scan_words_32(const struct chunk *chunk, struct sink *sink)
{
	const struct search *search = sink->searcher->search;
	uint32_t word;
	uint64_t size = reach(chunk, sizeof(word));

	for (uint64_t i = -chunk->start % 4; i + 4 <= size; i += 4) {
		memcpy(&word, chunk->bytes + i, sizeof(word));
		if (word - search->first < search->span)
			add_hit(sink, chunk->start + i);
	}
}

static inline bool leads_to(const uint8_t *bytes, uint64_t address, uint64_t wanted)
{
	int32_t distance;

	memcpy(&distance, bytes, sizeof(distance));
	return address + sizeof(distance) + (uint64_t)(int64_t)distance == wanted;
}

static void scan_relative(const struct chunk *chunk, struct sink *sink)
{
	uint64_t wanted = sink->searcher->search->first;
	uint64_t size = reach(chunk, sizeof(int32_t));

	for (uint64_t i = 0; i + 4 <= size; i++)
		if (leads_to(chunk->bytes + i, chunk->start + i, wanted))
			add_hit(sink, chunk->start + i);
}

static void scan_bytes(const struct chunk *chunk, struct sink *sink)
{
	const struct search *search = sink->searcher->search;
	const uint8_t *at = chunk->bytes;
	const uint8_t *end = at + reach(chunk, search->size);

	for (;;) {
		at = memmem(at, (size_t)(end - at), search->bytes, search->size);
		if (!at)
			return;
		add_hit(sink, chunk->start + (uint64_t)(at - chunk->bytes));
		at++;
	}
}

/* The bytes of a hit. */
static uint64_t hit_size(const struct search *search)
{
	switch (search->kind) {
	case SEARCH_WORDS:
		return 8;
	case SEARCH_BYTES:
		return search->size;
	default:
		return 4;
	}
}

static bool is_hit(const struct search *search, const uint8_t *bytes, uint64_t address)
{
	if (search->kind == SEARCH_RELATIVE)
		return leads_to(bytes, address, search->first);
	return memcmp(bytes, search->bytes, search->size) == 0;
}

/* An unaligned value may begin in one region and end in the next. */
static struct error *scan_seam(const struct chunk *chunk, struct sink *sink)
{
	const struct search *search = sink->searcher->search;
	uint64_t size = hit_size(search), start = chunk->start;
	_cleanup_(free) uint8_t *bytes = NULL;

	if (chunk->end != chunk->known || size == 1 ||
	    !image_find(sink->searcher->image, chunk->known))
		return NULL;
	bytes = malloc(size);
	TRY_MEMORY(bytes);
	if (chunk->known - start > size - 1)
		start = chunk->known - (size - 1);
	for (; start < chunk->known; start++)
		if (image_read(sink->searcher->image, start, bytes, size) &&
		    is_hit(search, bytes, start))
			add_hit(sink, start);
	return NULL;
}

static struct error *scan_chunk(const struct chunk *chunk, struct sink *sink)
{
	switch (sink->searcher->search->kind) {
	case SEARCH_WORDS:
		scan_words(chunk, sink);
		return NULL;
	case SEARCH_WORDS_32:
		scan_words_32(chunk, sink);
		return NULL;
	case SEARCH_RELATIVE:
		scan_relative(chunk, sink);
		break;
	case SEARCH_BYTES:
		scan_bytes(chunk, sink);
		break;
	}
	return scan_seam(chunk, sink);
}

static struct error *count_chunk(void *data, size_t number, unsigned int thread)
{
	struct searcher *searcher = data;
	struct chunk *chunk = searcher->chunks.items + number;
	struct sink sink = { .searcher = searcher };

	TRY(scan_chunk(chunk, &sink));
	chunk->count = sink.count;
	return progress_check(searcher->progress, chunk->end - chunk->start);
}

static struct error *keep_chunk(void *data, size_t number, unsigned int thread)
{
	struct searcher *searcher = data;
	const struct chunk *chunk = searcher->chunks.items + number;
	struct sink sink = { .searcher = searcher, .next = (size_t)chunk->first };

	if (chunk->count == 0 || chunk->first >= searcher->kept)
		return NULL;
	TRY(progress_check(searcher->progress, 0));
	return scan_chunk(chunk, &sink);
}

/* The part of the region in which a hit may begin. */
static struct chunk whole_region(const struct search *search, const struct region *region)
{
	struct chunk chunk = {
		.start = region->start,
		.end = region->end,
		.known = region->end,
		.bytes = region->bytes,
	};
	const uint64_t reach = (UINT64_C(1) << 31) + 4;
	uint64_t lowest = search->first < reach ? 0 : search->first - reach;

	if (search->kind != SEARCH_RELATIVE)
		return chunk;
	chunk.start = MAX(chunk.start, lowest);
	if (UINT64_MAX - search->first > reach && chunk.end > search->first + reach)
		chunk.end = search->first + reach;
	return chunk;
}

/*
 * Cut what is known of the region into chunks, holes left out. What is not aligned may begin in the
 * zeros of a hole.
 */
static struct error *cut_region(struct searcher *searcher, const struct region *region)
{
	const struct search *search = searcher->search;
	struct chunk whole = whole_region(search, region);
	uint64_t done = whole.start;
	uint64_t before = search->kind == SEARCH_BYTES || search->kind == SEARCH_RELATIVE
				  ? hit_size(search) - 1
				  : 0;

	while (done < whole.end) {
		uint64_t data = image_next_data(searcher->image, done);
		struct chunk chunk = whole;

		if (data >= whole.end)
			break;
		chunk.start = data - done > before ? data - before : done;
		if (whole.end - data > CHUNK_BYTES)
			chunk.end = data + CHUNK_BYTES;
		chunk.bytes = region->bytes + (chunk.start - region->start);
		TRY(array_append(&searcher->chunks, chunk));
		searcher->progress->total += chunk.end - chunk.start;
		done = chunk.end;
	}
	return NULL;
}

/* Search the chunks with hits once more, and keep those. */
static struct error *keep(struct searcher *searcher, struct hits *hits)
{
	size_t count = hits->count < MOST_HITS ? (size_t)hits->count : MOST_HITS;

	if (count == 0)
		return NULL;
	TRY(array_resize(&hits->addresses, count));
	searcher->addresses = hits->addresses.items;
	searcher->kept = count;
	return parallel_for(searcher->chunks.count, parallel_threads_for(searcher->progress),
			    keep_chunk, searcher);
}

struct error *search_memory(const struct image *image, const struct search *search,
			    struct memory_account *account, struct progress *progress,
			    struct hits *ret)
{
	struct searcher searcher = {
		.image = image,
		.search = search,
		.progress = progress,
		.chunks.memory.account = account,
	};
	struct hits hits = { .addresses.memory.account = account, .size = hit_size(search) };
	struct error *error = NULL;

	progress_begin(progress, "searching memory", 0);
	for (size_t i = 0; !error && i < image->region_count; i++)
		if (image->regions[i].bytes)
			error = cut_region(&searcher, &image->regions[i]);
	if (!error)
		error = parallel_for(searcher.chunks.count, parallel_threads_for(progress),
				     count_chunk, &searcher);
	for (size_t i = 0; !error && i < searcher.chunks.count; i++) {
		searcher.chunks.items[i].first = hits.count;
		hits.count += searcher.chunks.items[i].count;
	}
	if (!error)
		error = keep(&searcher, &hits);
	array_release(&searcher.chunks);
	if (error) {
		hits_deinit(&hits);
		return error;
	}
	*ret = hits;
	return NULL;
}

void hits_deinit(struct hits *hits)
{
	array_release(&hits->addresses);
	*hits = (struct hits){ .size = hits->size };
}
