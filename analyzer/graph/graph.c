#include "analyzer/graph/graph.h"

#include "analyzer/base/parallel.h"

#include <assert.h>
#include <string.h>

/*
 * Rows are kept in shares of this many allocations. A share is what one thread
 * scans in one go; its rows are one array, so that nothing has to be joined
 * when all are done.
 */
enum { SHARE_BITS = 14, SHARE = 1 << SHARE_BITS };

struct share {
	struct memory targets; /* allocation_id */
	uint32_t count;
};

struct graph {
	size_t count; /* allocations */
	struct share *shares;
	size_t share_count;
	struct memory offsets; /* uint32_t by id: where in the share it begins */
	uint64_t edge_count;
};

/* What a thread needs to scan. */
struct scanner {
	struct memory edges; /* allocation_id, of the share in work */
	size_t edge_count;
	size_t target_hint, source_hint;
	const uint8_t *bytes; /* of the dump's region looked at last */
	uint64_t start, size;
};

struct scan {
	const struct image *image;
	const struct allocation_index *index;
	const struct bitmap *used;
	struct heap_bounds bounds;
	struct progress *progress;
	struct graph *graph;
	struct scanner *scanners; /* one for each thread */
};

static struct error *create(size_t count, struct memory_account *account,
			    struct graph **ret)
{
	_cleanup_(graph_destroy) struct graph *graph =
		calloc(1, sizeof(*graph));
	struct error *error;

	if (!graph)
		return &error_no_memory;
	graph->count = count;
	graph->offsets.account = account;
	graph->shares = calloc(count / SHARE + 1, sizeof(*graph->shares));
	if (!graph->shares)
		return &error_no_memory;
	graph->share_count = (count + SHARE - 1) / SHARE;
	for (size_t i = 0; i < graph->share_count; i++)
		graph->shares[i].targets.account = account;
	error = memory_resize(&graph->offsets, (count + 1) * sizeof(uint32_t));
	if (error)
		return error;
	*ret = take(graph);
	return NULL;
}

void graph_destroy(struct graph *graph)
{
	for (size_t i = 0; i < graph->share_count; i++)
		memory_release(&graph->shares[i].targets);
	memory_release(&graph->offsets);
	free(graph->shares);
	free(graph);
}

/* The dump's bytes at address, at least a word of them, or NULL. */
static const uint8_t *find_bytes(const struct scan *scan,
				 struct scanner *scanner, uint64_t address,
				 uint64_t *ret_size)
{
	uint64_t offset = address - scanner->start;

	if (offset >= scanner->size) {
		const struct region *region = image_find(scan->image, address);

		if (!region || !region->bytes)
			return NULL;
		scanner->bytes = region->bytes;
		scanner->start = region->start;
		scanner->size = region->end - region->start;
		offset = address - scanner->start;
	}
	*ret_size = scanner->size - offset;
	return scanner->bytes + offset;
}

/* Add an edge for each of the words that is a reference. */
static struct error *scan_words(const struct scan *scan,
				struct scanner *scanner, allocation_id source,
				const uint8_t *bytes, uint64_t size)
{
	allocation_id last = source;

	for (uint64_t i = 0; i + 8 <= size; i += 8) {
		allocation_id target;
		uint64_t word;

		memcpy(&word, bytes + i, sizeof(word));
		if (!heap_bounds_hold(&scan->bounds, word))
			continue;
		target = allocation_find_near(scan->index, word,
					      &scanner->target_hint);
		if (target == NO_ALLOCATION || target == source ||
		    target == last)
			continue;
		last = target;
		if ((scanner->edge_count + 1) * sizeof(target) >
		    scanner->edges.size) {
			struct error *error = memory_reserve(
				&scanner->edges,
				(scanner->edge_count + 1) * sizeof(target));

			if (error)
				return error;
		}
		((allocation_id *)
			 scanner->edges.bytes)[scanner->edge_count++] = target;
	}
	return NULL;
}

static struct error *scan_allocation(const struct scan *scan,
				     struct scanner *scanner,
				     struct memory_range range,
				     allocation_id source)
{
	while (range.start < range.end) {
		struct error *error;
		uint64_t size;
		const uint8_t *bytes =
			find_bytes(scan, scanner, range.start, &size);

		/* What is absent refers to nothing; findings tell of it. */
		if (!bytes)
			return NULL;
		if (size > range.end - range.start)
			size = range.end - range.start;
		error = scan_words(scan, scanner, source, bytes, size);
		if (error)
			return error;
		range.start += size;
	}
	return NULL;
}

/* Keep the edges found for a share, in memory of just their size. */
static struct error *keep_edges(struct scanner *scanner, struct share *share)
{
	size_t size = scanner->edge_count * sizeof(allocation_id);
	struct error *error = memory_resize(&share->targets, size);

	if (error)
		return error;
	if (size > 0)
		memcpy(share->targets.bytes, scanner->edges.bytes, size);
	share->count = (uint32_t)scanner->edge_count;
	return NULL;
}

static struct error *scan_share(void *data, size_t number, unsigned int thread)
{
	struct scan *scan = data;
	struct graph *graph = scan->graph;
	struct scanner *scanner = &scan->scanners[thread];
	uint32_t *offsets = graph->offsets.bytes;
	size_t first = number << SHARE_BITS, end = first + SHARE;
	uint64_t bytes = 0;

	if (end > graph->count)
		end = graph->count;
	scanner->edge_count = 0;
	for (size_t id = first; id < end; id++) {
		struct memory_range range;
		struct error *error;

		if (scanner->edge_count > UINT32_MAX)
			return error_create(ERROR_NOT_SUPPORTED,
					    "more than 4,294,967,295 "
					    "references in %d allocations",
					    SHARE);
		offsets[id] = (uint32_t)scanner->edge_count;
		if (!bitmap_get(scan->used, id))
			continue;
		range = allocation_range_near(scan->index, (allocation_id)id,
					      &scanner->source_hint);
		error = scan_allocation(scan, scanner, range,
					(allocation_id)id);
		if (error)
			return error;
		bytes += range.end - range.start;
	}
	if (!progress_step(scan->progress, bytes))
		return error_create(ERROR_INTERRUPTED, "interrupted");
	return keep_edges(scanner, &graph->shares[number]);
}

static struct error *scan_all(struct scan *scan, struct memory_account *account)
{
	unsigned int threads = parallel_threads();
	struct graph *graph = scan->graph;
	struct error *error;

	scan->scanners = calloc(threads, sizeof(*scan->scanners));
	if (!scan->scanners)
		return &error_no_memory;
	for (unsigned int i = 0; i < threads; i++)
		scan->scanners[i].edges.account = account;
	error = parallel_for(graph->share_count, threads, scan_share, scan);
	for (unsigned int i = 0; i < threads; i++)
		memory_release(&scan->scanners[i].edges);
	free(scan->scanners);
	for (size_t i = 0; i < graph->share_count; i++)
		graph->edge_count += graph->shares[i].count;
	return error;
}

struct error *graph_create(const struct image *image,
			   const struct allocation_index *index,
			   struct memory_account *account,
			   struct progress *progress, struct graph **ret)
{
	_cleanup_(graph_destroy) struct graph *graph = NULL;
	struct scan scan = {
		.image = image,
		.index = index,
		.used = allocation_used(index),
		.bounds = allocation_bounds(index),
		.progress = progress,
	};
	struct error *error =
		create(allocation_count(index), account, &graph);

	if (error)
		return error;
	progress_begin(progress, "scanning for references",
		       image_size(image));
	scan.graph = graph;
	error = scan_all(&scan, account);
	if (error)
		return error;
	*ret = take(graph);
	return NULL;
}

uint64_t graph_edge_count(const struct graph *graph)
{
	return graph->edge_count;
}

struct edges graph_outgoing(const struct graph *graph, allocation_id id)
{
	const struct share *share = &graph->shares[id >> SHARE_BITS];
	const uint32_t *offsets = graph->offsets.bytes;
	const allocation_id *targets = share->targets.bytes;
	uint32_t end = share->count;

	if ((id + 1) % SHARE != 0 && id + 1 < graph->count)
		end = offsets[id + 1];
	if (end == offsets[id])
		return (struct edges){ NULL, 0 };
	return (struct edges){ targets + offsets[id], end - offsets[id] };
}

/* Allocations that are reached, and whose edges were not followed yet. */
struct pending {
	struct memory memory; /* allocation_id */
	size_t count;
};

static struct error *push(struct pending *pending, allocation_id id)
{
	if ((pending->count + 1) * sizeof(id) > pending->memory.size) {
		struct error *error =
			memory_reserve(&pending->memory,
				       (pending->count + 1) * sizeof(id));

		if (error)
			return error;
	}
	((allocation_id *)pending->memory.bytes)[pending->count++] = id;
	return NULL;
}

/* Follow all edges from id; what is new becomes pending. */
static struct error *follow(const struct graph *graph, allocation_id id,
			    struct bitmap *reached, struct pending *pending)
{
	struct edges edges = graph_outgoing(graph, id);

	for (size_t i = 0; i < edges.count; i++) {
		struct error *error;

		if (bitmap_get(reached, edges.targets[i]))
			continue;
		bitmap_set(reached, edges.targets[i]);
		error = push(pending, edges.targets[i]);
		if (error)
			return error;
	}
	return NULL;
}

struct error *graph_mark(const struct graph *graph, const struct bitmap *from,
			 struct bitmap *reached, struct memory_account *account,
			 struct progress *progress)
{
	enum { PROGRESS_STEP = 1 << 16 };
	struct pending pending = { .memory.account = account };
	struct error *error = NULL;
	size_t steps = 0;

	progress_begin(progress, "finding what is reachable", graph->count);
	bitmap_copy(reached, from);
	bitmap_for_each (start, from) {
		allocation_id id = (allocation_id)start;

		error = follow(graph, id, reached, &pending);
		while (!error && pending.count > 0) {
			id = ((allocation_id *)
				      pending.memory.bytes)[--pending.count];
			error = follow(graph, id, reached, &pending);
			if (!error && ++steps % PROGRESS_STEP == 0 &&
			    !progress_step(progress, PROGRESS_STEP))
				error = error_create(ERROR_INTERRUPTED,
						     "interrupted");
		}
		if (error)
			break;
	}
	memory_release(&pending.memory);
	return error;
}

/* Working storage of graph_transpose(). */
struct turning {
	const struct graph *from;
	struct graph *to;
	struct memory last; /* by target: 1 + the source seen last, or 0 */
	struct progress *progress;
};

/* Call visit for each source of each target once, sources upwards. */
static struct error *visit_edges(struct turning *turning,
				 void (*visit)(struct turning *turning,
					       allocation_id source,
					       allocation_id target))
{
	uint32_t *last = turning->last.bytes;

	if (turning->from->count > 0)
		memset(last, 0, turning->from->count * sizeof(*last));
	for (size_t id = 0; id < turning->from->count; id++) {
		struct edges edges =
			graph_outgoing(turning->from, (allocation_id)id);

		for (size_t i = 0; i < edges.count; i++) {
			allocation_id target = edges.targets[i];

			if (last[target] == id + 1)
				continue;
			last[target] = (uint32_t)id + 1;
			visit(turning, (allocation_id)id, target);
		}
		if (id % SHARE == 0 && !progress_step(turning->progress, SHARE))
			return error_create(ERROR_INTERRUPTED, "interrupted");
	}
	return NULL;
}

static void count_edge(struct turning *turning, allocation_id source,
		       allocation_id target)
{
	((uint32_t *)turning->to->offsets.bytes)[target]++;
}

/* offsets[] counts up from the row's beginning as the row fills. */
static void place_edge(struct turning *turning, allocation_id source,
		       allocation_id target)
{
	struct share *share = &turning->to->shares[target >> SHARE_BITS];
	uint32_t *offsets = turning->to->offsets.bytes;
	allocation_id *targets = share->targets.bytes;

	targets[offsets[target]++] = source;
}

/* Make row lengths into beginnings, and room for the rows. */
static struct error *lay_out_share(struct graph *graph, size_t number)
{
	struct share *share = &graph->shares[number];
	uint32_t *offsets = graph->offsets.bytes;
	size_t first = number << SHARE_BITS, end = first + SHARE;
	uint64_t total = 0;

	for (size_t id = first; id < end && id < graph->count; id++) {
		uint32_t length = offsets[id];

		offsets[id] = (uint32_t)total;
		total += length;
	}
	if (total > UINT32_MAX)
		return error_create(ERROR_NOT_SUPPORTED,
				    "more than 4,294,967,295 references to "
				    "%d allocations",
				    SHARE);
	share->count = (uint32_t)total;
	graph->edge_count += total;
	return memory_resize(&share->targets, total * sizeof(allocation_id));
}

/* Move the beginnings, which are ends by now, one row up. */
static void shift_share(struct graph *graph, size_t number)
{
	uint32_t *offsets = graph->offsets.bytes, begin = 0;
	size_t first = number << SHARE_BITS, end = first + SHARE;

	for (size_t id = first; id < end && id < graph->count; id++) {
		uint32_t next = offsets[id];

		offsets[id] = begin;
		begin = next;
	}
}

static struct error *turn_edges(struct turning *turning)
{
	struct graph *to = turning->to;
	struct error *error = memory_resize(
		&turning->last, to->count * sizeof(uint32_t));

	if (!error)
		error = visit_edges(turning, count_edge);
	for (size_t i = 0; i < to->share_count && !error; i++)
		error = lay_out_share(to, i);
	if (!error)
		error = visit_edges(turning, place_edge);
	if (error)
		return error;
	for (size_t i = 0; i < to->share_count; i++)
		shift_share(to, i);
	return NULL;
}

struct error *graph_transpose(const struct graph *graph,
			      struct memory_account *account,
			      struct progress *progress, struct graph **ret)
{
	_cleanup_(graph_destroy) struct graph *to = NULL;
	struct turning turning = {
		.from = graph,
		.last.account = account,
		.progress = progress,
	};
	struct error *error = create(graph->count, account, &to);

	if (error)
		return error;
	progress_begin(progress, "finding who refers to whom",
		       2 * graph->count);
	turning.to = to;
	error = turn_edges(&turning);
	memory_release(&turning.last);
	if (error)
		return error;
	*ret = take(to);
	return NULL;
}
