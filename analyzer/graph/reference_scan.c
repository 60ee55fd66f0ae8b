/*
 * The pass that finds references.
 *
 * Chunks of bytes (analyzer/heap/work_chunks.h) are handed out to threads. A share that is one
 * chunk gets its rows from that, in the array of the thread. A share that is cut gets them from
 * several threads, in order: what a chunk has found, still in the processor's cache, is put behind
 * what the chunks before it have. All of these are in one array, which does not move while it
 * grows.
 */
#include "analyzer/base/parallel.h"
#include "analyzer/graph/graph_parts.h"
#include "analyzer/graph/reference_words.h"
#include "analyzer/runtimes/runtimes.h"

#include <string.h>

enum {
	FIRST_WORDS = 4,
	PIECE = 1 << 20, /* bytes of an allocation scanned at a time */
};

struct edge_list {
	struct memory *memory; /* allocation_id */
	size_t count;	       /* in it */
};

/* What a thread needs to scan. */
struct scanner {
	struct edge_list edges;
	/* Of a chunk, to be joined to what others found; or of a share. */
	struct memory found;
	bool is_part; /* of an allocation, whose edges are counted later */
	size_t source_hint;
	struct reference_words words;		/* to be looked up together */
	allocation_id last_source, last_target; /* of the edge added last */
	allocation_id judged;			/* whose stale links are known; or none's */
	unsigned int stale_links;
	struct view view;
};

/* The edges of shares that are cut. Only the holder of the baton changes it. */
struct joint {
	struct relay relay;
	unsigned int array; /* of the graph */
	size_t count;	    /* in it */
	allocation_id last_source, last_target;
};

struct scan {
	const struct image *image;
	const struct allocation_index *index;
	const struct runtimes *runtimes; /* that have links; or NULL */
	const struct bitmap *sources;	 /* that may refer to anything */
	struct progress *progress;
	struct graph *graph;
	struct work_chunks chunks;
	struct scanner *scanners; /* one for each thread */
	unsigned int threads;
	struct joint joint;
	struct split_work work;
};

/*
 * Add edges, but none to itself, nor one that is the same as the one before. Until its share is
 * done, a row's word counts its edges. Which words are edges cannot be foretold, so there is no
 * branch for that.
 */
static void add_edges(struct scanner *scanner, uint32_t *lengths, const allocation_id *sources,
		      const allocation_id *targets, size_t count)
{
	allocation_id *edges = scanner->edges.memory->bytes;
	allocation_id last_source = scanner->last_source;
	allocation_id last_target = scanner->last_target;
	size_t edge_count = scanner->edges.count;

	for (size_t i = 0; i < count; i++) {
		allocation_id source = sources[i], target = targets[i];
		bool is_new = (target != last_target) | (source != last_source);
		bool is_edge = (target != NO_ALLOCATION) & (target != source) & is_new;

		edges[edge_count] = target;
		edge_count += is_edge;
		/* Other threads count the edges of the same, too. */
		if (!scanner->is_part)
			lengths[source] += is_edge;
		last_source = is_edge ? source : last_source;
		last_target = is_edge ? target : last_target;
	}
	scanner->edges.count = edge_count;
	scanner->last_source = last_source;
	scanner->last_target = last_target;
}

/* Which of the first words of the allocation are links of the allocator's. */
static unsigned int judge(const struct scan *scan, struct scanner *scanner, allocation_id id,
			  struct memory_range range)
{
	const unsigned int word = image_word_size(scan->image);
	uint64_t words[FIRST_WORDS] = { 0 }, size;
	const uint8_t *bytes = view_bytes(&scanner->view, range.start, &size);

	if (!bytes)
		return 0;
	if (size > range.end - range.start)
		size = range.end - range.start;
	for (size_t i = 0; i < FIRST_WORDS && (i + 1) * word <= size; i++)
		words[i] = load_word(bytes + i * word, word);
	return allocation_stale_links(scan->index, range.start, words);
}

/* Whether the word in the slot is such a link. */
static bool is_stale_link(const struct scan *scan, struct scanner *scanner, size_t slot)
{
	allocation_id id = scanner->words.sources[slot];
	struct memory_range range = allocation_range_near(scan->index, id, &scanner->source_hint);
	uint64_t word = (scanner->words.places[slot] - range.start) / image_word_size(scan->image);

	if (word >= FIRST_WORDS)
		return false;
	if (scanner->judged != id)
		scanner->stale_links = judge(scan, scanner, id, range);
	scanner->judged = id;
	return scanner->stale_links >> word & 1;
}

/* The targets of words from the slot on become what a runtime says; none of those that are links.
 */
static void ask_runtimes(const struct scan *scan, const struct reference_words *words, size_t first,
			 allocation_id *targets, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		allocation_id source = words->sources[first + i];
		uint64_t word = words->words[first + i];
		allocation_id resolved = runtimes_resolve(scan->runtimes, source, word);

		if (resolved != NO_ALLOCATION)
			targets[i] = resolved;
		if (targets[i] != NO_ALLOCATION &&
		    runtimes_is_link(scan->runtimes, source, targets[i], word,
				     words->places[first + i]))
			targets[i] = NO_ALLOCATION;
	}
}

/* Look up words if there are enough, or all, and add edges for references. */
static struct error *look_up(const struct scan *scan, struct scanner *scanner, bool all)
{
	struct reference_words *words = &scanner->words;
	allocation_id targets[MOST_ADDRESSES];
	uint64_t headers;
	size_t count, first;

	while ((count = reference_words_look_up(words, all, &first, targets, &headers))) {
		size_t edges = scanner->edges.count + count;

		TRY(memory_reserve(scanner->edges.memory, edges * sizeof(*targets)));
		if (allocation_stale_links_lead_anywhere(scan->index))
			headers = UINT64_MAX >> (64 - count);
		for (; headers; headers &= headers - 1) {
			size_t i = (size_t)__builtin_ctzll(headers);

			if (targets[i] != NO_ALLOCATION && is_stale_link(scan, scanner, first + i))
				targets[i] = NO_ALLOCATION;
		}
		if (scan->runtimes)
			ask_runtimes(scan, words, first, targets, count);
		add_edges(scanner, scan->graph->words.items, words->sources + first, targets,
			  count);
	}
	return NULL;
}

/* Where in the range the dump has something again, at the earliest. */
static uint64_t end_of_absence(const struct scan *scan, struct memory_range range)
{
	const struct region *region = image_find(scan->image, range.start);
	uint64_t end = region ? region->end : range.end;

	return end < range.end ? end : range.end;
}

/* Collect the words that may be references. */
static struct error *scan_words(const struct scan *scan, struct scanner *scanner,
				allocation_id source, uint64_t address, const uint8_t *bytes,
				uint64_t size)
{
	const unsigned int word = image_word_size(scan->image);

	for (uint64_t i = 0; i + word <= size; i += FILTER_WORDS * word) {
		size_t left = (size - i) / word;

		reference_words_add_of(&scanner->words, source, address + i, bytes + i,
				       left < FILTER_WORDS ? left : FILTER_WORDS);
		TRY(look_up(scan, scanner, false));
	}
	return NULL;
}

/* Scan the range of the allocation. */
static struct error *scan_allocation(const struct scan *scan, struct scanner *scanner,
				     struct memory_range range, allocation_id source)
{
	while (range.start < range.end) {
		uint64_t size;
		const uint8_t *bytes = view_bytes(&scanner->view, range.start, &size);

		/* What is absent refers to nothing; findings tell of it. */
		if (!bytes) {
			range.start = end_of_absence(scan, range);
			continue;
		}
		if (size > range.end - range.start)
			size = range.end - range.start;
		if (size > PIECE)
			size = PIECE;
		TRY(scan_words(scan, scanner, source, range.start, bytes, size));
		range.start += size;
		/* What was never touched is a hole of the dump. */
		if (size == PIECE && range.start < range.end)
			range.start = image_next_data(scan->image, range.start);
	}
	return NULL;
}

static struct error *scan_stretch(const struct scan *scan, struct scanner *scanner,
				  const struct stretch *stretch)
{
	uint64_t address = stretch->range.start;

	while (address < stretch->range.end) {
		scanner->words.add(&scanner->words, stretch, &address);
		TRY(look_up(scan, scanner, false));
	}
	return NULL;
}

/* Scan from id on, below end, as much as goes at once; *id is what is next. */
static struct error *scan_some(const struct scan *scan, struct scanner *scanner, allocation_id end,
			       allocation_id *id, uint64_t *bytes)
{
	struct memory_range range;
	struct stretch stretch;

	if (stretch_find(&scanner->words, &scanner->view, *id, end, &scanner->source_hint,
			 &stretch)) {
		*id = stretch.end;
		*bytes += stretch.range.end - stretch.range.start;
		return scan_stretch(scan, scanner, &stretch);
	}
	range = allocation_range_near(scan->index, *id, &scanner->source_hint);
	*bytes += range.end - range.start;
	return scan_allocation(scan, scanner, range, (*id)++);
}

/* Scan all of the chunk; *bytes counts up what that was. */
static struct error *scan_chunk(const struct scan *scan, struct scanner *scanner,
				const struct work_chunk *chunk, uint64_t *bytes)
{
	size_t next = bitmap_next(scan->sources, chunk->first);

	if (chunk->part.start < chunk->part.end) {
		*bytes += chunk->part.end - chunk->part.start;
		TRY(scan_allocation(scan, scanner, chunk->part, chunk->first));
		next = chunk->end;
	}
	while (next < chunk->end) {
		allocation_id id = (allocation_id)next;

		TRY(scan_some(scan, scanner, chunk->end, &id, bytes));
		next = bitmap_next(scan->sources, id);
	}
	return look_up(scan, scanner, true);
}

/* The rows of a share begin behind so many edges of an array. */
static void begin_share(struct graph *graph, size_t number, unsigned int array, size_t begin)
{
	graph->shares[number].array = array;
	graph->shares[number].begin = begin;
}

/* Put the rows of the share, which are all there, behind those before. */
static struct error *add_share(struct graph *graph, size_t number, struct scanner *scanner,
			       size_t count)
{
	struct edge_list *edges = &scanner->edges;
	size_t room = edges->count + count + ROW_ROOM;
	allocation_id *end;

	TRY(memory_reserve(edges->memory, room * sizeof(allocation_id)));
	/* It reads on behind them. */
	TRY(memory_reserve(&scanner->found, (count + ROW_ROOM) * sizeof(allocation_id)));
	end = (allocation_id *)edges->memory->bytes + edges->count;
	if (graph_compact_share(graph, number, scanner->found.bytes, count, end, &count)) {
		edges->count += count;
		return NULL;
	}
	if (count > 0)
		memcpy(end, scanner->found.bytes, count * sizeof(*end));
	edges->count += count;
	return graph_lay_out_share(graph, number);
}

/* The share is one chunk. */
static struct error *scan_share(struct scan *scan, size_t number, unsigned int thread,
				uint64_t *bytes)
{
	const struct work_chunk *chunk = &scan->chunks.items[number];
	struct scanner *scanner = &scan->scanners[thread];
	size_t share = work_chunk_share(chunk);
	struct edge_list own = scanner->edges;
	struct error *error;
	size_t count;

	begin_share(scan->graph, share, thread, own.count);
	scanner->last_source = NO_ALLOCATION;
	scanner->edges = (struct edge_list){ .memory = &scanner->found };
	error = scan_chunk(scan, scanner, chunk, bytes);
	count = scanner->edges.count;
	scanner->edges = own;
	return error ? error : add_share(scan->graph, share, scanner, count);
}

/* All chunks of the share, which is cut, fall to this thread. */
static struct error *scan_alone(struct scan *scan, size_t number, unsigned int thread,
				uint64_t *bytes)
{
	const struct work_chunk *chunk = &scan->chunks.items[number];
	struct scanner *scanner = &scan->scanners[thread];
	size_t share = work_chunk_share(chunk);

	if (work_chunk_begins(&scan->chunks, number)) {
		begin_share(scan->graph, share, thread, scanner->edges.count);
		scanner->last_source = NO_ALLOCATION;
	}
	TRY(scan_chunk(scan, scanner, chunk, bytes));
	return work_chunk_ends(&scan->chunks, number) ? graph_lay_out_share(scan->graph, share)
						      : NULL;
}

/* A place behind what was joined already. */
static struct error *find_place(struct scan *scan, struct scanner *scanner, size_t number,
				size_t count, size_t *ret_place)
{
	const struct work_chunk *chunk = &scan->chunks.items[number];
	struct joint *joint = &scan->joint;
	struct graph *graph = scan->graph;
	size_t share = work_chunk_share(chunk);

	TRY(memory_fill_room(&graph->arrays[joint->array].memory,
			     (joint->count + count) * sizeof(allocation_id)));
	if (work_chunk_begins(&scan->chunks, number))
		begin_share(graph, share, joint->array, joint->count);
	if (scanner->is_part)
		graph->words.items[chunk->first] += (uint32_t)count;
	if (count > 0) {
		joint->last_source = scanner->last_source;
		joint->last_target = scanner->last_target;
	}
	*ret_place = joint->count;
	joint->count += count;
	return work_chunk_ends(&scan->chunks, number) ? graph_lay_out_share(graph, share) : NULL;
}

/* Put the edges that a chunk has found behind those of the chunks before. */
static struct error *join(struct scan *scan, struct scanner *scanner, size_t number, size_t count)
{
	const struct work_chunk *chunk = &scan->chunks.items[number];
	const allocation_id *found = scanner->found.bytes;
	struct joint *joint = &scan->joint;
	allocation_id *edges;
	size_t place;

	/* The one that ended it reports why. */
	if (!relay_take(&joint->relay, chunk->number))
		return NULL;
	/* The same target may stand at both sides of a seam. */
	if (count > 0 && joint->last_source == chunk->first && joint->last_target == *found) {
		found++;
		count--;
	}
	TRY(find_place(scan, scanner, number, count, &place));
	edges = scan->graph->arrays[joint->array].items;
	relay_pass(&joint->relay);
	if (count > 0)
		memcpy(edges + place, found, count * sizeof(*found));
	return NULL;
}

/* Others scan other chunks of the share. */
static struct error *scan_jointly(struct scan *scan, size_t number, unsigned int thread,
				  uint64_t *bytes)
{
	const struct work_chunk *chunk = &scan->chunks.items[number];
	struct scanner *scanner = &scan->scanners[thread];
	struct edge_list own = scanner->edges;
	struct error *error;
	size_t count;

	scanner->edges = (struct edge_list){ .memory = &scanner->found };
	scanner->last_source = NO_ALLOCATION;
	scanner->is_part = chunk->part.start < chunk->part.end;
	error = scan_chunk(scan, scanner, chunk, bytes);
	count = scanner->edges.count;
	scanner->edges = own;
	if (!error)
		error = join(scan, scanner, number, count);
	if (error)
		relay_end(&scan->joint.relay);
	scanner->is_part = false;
	return error;
}

static struct error *take_chunk(void *data, size_t number, unsigned int thread)
{
	struct scan *scan = data;
	const struct work_chunk *chunk = work_chunks_take(&scan->chunks, number);
	bool is_cut = chunk->number != NOT_CUT;
	uint64_t bytes = 0;
	struct error *error = (!is_cut		   ? scan_share
			       : scan->threads > 1 ? scan_jointly
						   : scan_alone)(scan, number, thread, &bytes);

	work_chunk_release(&scan->chunks, chunk);
	return error ? error : split_work_check(&scan->work, number, thread, scan->progress, bytes);
}

static struct error *run(struct scan *scan)
{
	struct graph *graph = scan->graph;
	_cleanup_(free) size_t *counts = calloc(graph->array_count, sizeof(*counts));

	scan->scanners = calloc(scan->threads, sizeof(*scan->scanners));
	if (!counts || !scan->scanners)
		return &error_no_memory;
	for (unsigned int i = 0; i < scan->threads; i++) {
		scan->scanners[i].view.image = scan->image;
		scan->scanners[i].judged = NO_ALLOCATION;
		reference_words_init(&scan->scanners[i].words, scan->index, scan->sources,
				     image_word_size(scan->image));
		scan->scanners[i].edges.memory = &graph->arrays[i].memory;
		scan->scanners[i].found.account = graph->account;
	}
	TRY(split_work_run(&scan->work, scan->progress, scan->chunks.count, scan->threads,
			   take_chunk, scan));
	for (unsigned int i = 0; i < scan->threads; i++)
		counts[i] = scan->scanners[i].edges.count;
	counts[scan->joint.array] = scan->joint.count;
	return graph_place_shares(graph, counts);
}

/* Where the system has no addresses to join in, one thread scans. */
static void keep_room(struct scan *scan)
{
	uint64_t most = scan->chunks.cut_bytes / image_word_size(scan->image);
	struct error *error;

	if (scan->threads == 1)
		return;
	error = memory_keep_room(&scan->graph->arrays[scan->joint.array].memory,
				 most * sizeof(allocation_id));
	if (error) {
		error_destroy(error);
		scan->threads = 1;
	}
}

static void scan_deinit(struct scan *scan)
{
	for (unsigned int i = 0; scan->scanners && i < scan->threads; i++)
		memory_release(&scan->scanners[i].found);
	free(scan->scanners);
	array_release(&scan->chunks);
	relay_deinit(&scan->joint.relay);
}
DEFINE_DEINIT(scan_deinit, struct scan)

/* What is in use, but for what holds no pointers. */
static struct error *find_sources(struct scan *scan, struct bitmap *own,
				  struct memory_account *account)
{
	const struct bitmap *used = allocation_used(scan->index);
	const struct bitmap *pointerless = allocation_having(scan->index, TRAIT_POINTERLESS);

	scan->sources = pointerless ? own : used;
	return pointerless ? bitmap_init_minus(own, used, pointerless, account) : NULL;
}

struct error *graph_create(const struct image *image, const struct allocation_index *index,
			   const struct runtimes *runtimes, struct memory_account *account,
			   struct progress *progress, struct graph **ret)
{
	_cleanup_(graph_destroy) struct graph *graph = NULL;
	_cleanup_(bitmap_deinit) struct bitmap sources = { 0 };
	_cleanup_(scan_deinit) struct scan scan = {
		.image = image,
		.index = index,
		.runtimes = runtimes_have_links(runtimes) ? runtimes : NULL,
		.progress = progress,
		.threads = parallel_threads_for(progress),
		.joint.last_source = NO_ALLOCATION,
	};

	relay_init(&scan.joint.relay);
	TRY(graph_create_rows(allocation_count(index), scan.threads + 1, account, &graph));
	TRY(find_sources(&scan, &sources, account));
	progress_begin(progress, "scanning for references", image->size);
	scan.graph = graph;
	scan.joint.array = scan.threads;
	TRY(work_chunks_init(&scan.chunks, image, index, scan.sources, NULL, account));
	keep_room(&scan);
	TRY(run(&scan));
	*ret = take(graph);
	return NULL;
}
