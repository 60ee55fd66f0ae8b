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
#include "analyzer/graph/references.h"

#include <string.h>

struct edge_list {
	struct memory *memory; /* allocation_id */
	size_t count;	       /* in it */
};

/* The state of a scanning thread. */
struct scanner {
	struct edge_list edges;
	/* The edges of a chunk, to be joined with others'; or of a share. */
	struct memory found;
	bool is_part;	   /* of an allocation, whose edges are counted later */
	uint32_t *lengths; /* of the graph's rows */
	struct references references;
	allocation_id last_source, last_target; /* of the edge added last */
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
	const struct runtimes *runtimes; /* or NULL */
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
static struct error *add_edges(void *data, const allocation_id *sources,
			       const allocation_id *targets, size_t count)
{
	struct scanner *scanner = data;
	allocation_id last_source = scanner->last_source;
	allocation_id last_target = scanner->last_target;
	size_t edge_count = scanner->edges.count;
	uint32_t *lengths = scanner->lengths;
	allocation_id *edges;

	TRY(memory_reserve(scanner->edges.memory, (edge_count + count) * sizeof(*edges)));
	edges = scanner->edges.memory->bytes;
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
	return NULL;
}

/* Scan all of the chunk; *bytes counts up what that was. */
static struct error *scan_chunk(const struct scan *scan, struct scanner *scanner,
				const struct work_chunk *chunk, uint64_t *bytes)
{
	struct references *references = &scanner->references;
	size_t next = bitmap_next(scan->sources, chunk->first);

	if (chunk->part.start < chunk->part.end) {
		*bytes += chunk->part.end - chunk->part.start;
		TRY(references_read_part(references, chunk->part, chunk->first));
		next = chunk->end;
	}
	while (next < chunk->end) {
		allocation_id id = (allocation_id)next;

		TRY(references_read_some(references, chunk->end, &id, bytes));
		next = bitmap_next(scan->sources, id);
	}
	return references_end(references);
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
	/* Both sides of a seam may have the same target. */
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
	TRY_MEMORY(counts && scan->scanners);
	for (unsigned int i = 0; i < scan->threads; i++) {
		struct scanner *scanner = &scan->scanners[i];

		references_init(&scanner->references, scan->image, scan->index, scan->runtimes,
				scan->sources);
		scanner->references.pass = add_edges;
		scanner->references.data = scanner;
		scanner->lengths = graph->words.items;
		scanner->edges.memory = &graph->arrays[i].memory;
		scanner->found.account = graph->account;
	}
	TRY(split_work_run(&scan->work, scan->progress, scan->chunks.count, scan->threads,
			   take_chunk, scan));
	for (unsigned int i = 0; i < scan->threads; i++)
		counts[i] = scan->scanners[i].edges.count;
	counts[scan->joint.array] = scan->joint.count;
	return graph_place_shares(graph, counts);
}

/* If the system has no address space to join lists in, scan on one thread. */
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

/* Find the used allocations that may have pointers. */
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
		.runtimes = runtimes,
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
