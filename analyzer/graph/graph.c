#include "analyzer/base/parallel.h"
#include "analyzer/graph/graph_parts.h"

#include <assert.h>
#include <string.h>

/* What a thread needs to scan. */
struct scanner {
	struct memory *edges; /* allocation_id; the graph's */
	size_t edge_count;    /* in it */
	size_t target_hint, source_hint;
	uint64_t words[MOST_ADDRESSES]; /* to be looked up together */
	allocation_id sources[MOST_ADDRESSES];
	size_t word_count;
	allocation_id last_source, last_target; /* of the edge added last */
	const uint8_t *bytes; /* of the dump's region looked at last */
	uint64_t start, size;
};

struct scan {
	const struct image *image;
	const struct allocation_index *index;
	const struct bitmap *used;
	const struct bitmap *pointerless; /* NULL: none is */
	struct heap_bounds bounds;
	struct progress *progress;
	struct graph *graph;
	struct scanner *scanners; /* one for each thread */
	struct split_work work;
};

struct error *graph_create_empty(size_t count, unsigned int arrays,
				 struct memory_account *account,
				 struct graph **ret)
{
	_cleanup_(graph_destroy) struct graph *graph =
		calloc(1, sizeof(*graph));

	if (!graph)
		return &error_no_memory;
	graph->count = count;
	graph->offsets.account = account;
	graph->shares = calloc(count / SHARE + 1, sizeof(*graph->shares));
	graph->arrays = calloc(arrays, sizeof(*graph->arrays));
	if (!graph->shares || !graph->arrays)
		return &error_no_memory;
	graph->share_count = (count + SHARE - 1) / SHARE;
	graph->array_count = arrays;
	for (unsigned int i = 0; i < arrays; i++)
		graph->arrays[i].account = account;
	*ret = take(graph);
	return NULL;
}

/* The same, with room for the rows' beginnings. */
static struct error *create(size_t count, unsigned int arrays,
			    struct memory_account *account, struct graph **ret)
{
	_cleanup_(graph_destroy) struct graph *graph = NULL;
	struct error *error =
		graph_create_empty(count, arrays, account, &graph);

	if (!error)
		error = memory_resize(&graph->offsets,
				      (count + 1) * sizeof(uint32_t));
	if (error)
		return error;
	*ret = take(graph);
	return NULL;
}

void graph_destroy(struct graph *graph)
{
	for (unsigned int i = 0; i < graph->array_count; i++)
		memory_release(&graph->arrays[i]);
	memory_release(&graph->offsets);
	free(graph->arrays);
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

/*
 * Add an edge, unless it is one to itself or the same as the one before. Until
 * its share is done, a row's offset counts its edges.
 */
static void add_edge(struct scanner *scanner, uint32_t *offsets,
		     allocation_id source, allocation_id target)
{
	if (target == NO_ALLOCATION || target == source ||
	    (target == scanner->last_target && source == scanner->last_source))
		return;
	scanner->last_source = source;
	scanner->last_target = target;
	((allocation_id *)scanner->edges->bytes)[scanner->edge_count++] =
		target;
	offsets[source]++;
}

/* Look up the words collected so far, and add an edge for each reference. */
static struct error *look_up(const struct scan *scan, struct scanner *scanner)
{
	allocation_id targets[MOST_ADDRESSES];
	size_t count = scanner->word_count;
	struct error *error =
		memory_reserve(scanner->edges, (scanner->edge_count + count) *
						       sizeof(*targets));

	if (error)
		return error;
	scanner->word_count = 0;
	allocation_find_many(scan->index, scanner->words, count,
			     &scanner->target_hint, targets);
	for (size_t i = 0; i < count; i++)
		add_edge(scanner, scan->graph->offsets.bytes,
			 scanner->sources[i], targets[i]);
	return NULL;
}

/* Where in the range the dump has something again, at the earliest. */
static uint64_t end_of_absence(const struct scan *scan,
			       struct memory_range range)
{
	const struct region *region = image_find(scan->image, range.start);
	uint64_t end = region ? region->end : range.end;

	return end < range.end ? end : range.end;
}

/* Collect the words that may be references. */
static struct error *scan_words(const struct scan *scan,
				struct scanner *scanner, allocation_id source,
				const uint8_t *bytes, uint64_t size)
{
	const struct heap_bounds bounds = scan->bounds;

	for (uint64_t i = 0; i + 8 <= size; i += 8) {
		uint64_t word;

		memcpy(&word, bytes + i, sizeof(word));
		if (!heap_bounds_hold(&bounds, word))
			continue;
		scanner->sources[scanner->word_count] = source;
		scanner->words[scanner->word_count++] = word;
		if (scanner->word_count == MOST_ADDRESSES) {
			struct error *error = look_up(scan, scanner);

			if (error)
				return error;
		}
	}
	return NULL;
}

enum { FIRST_WORDS = 4, PIECE = 1 << 20 /* bytes scanned at a time */ };

/*
 * The first words of an allocation that are not links which the allocator left
 * there. *ret_size is how many bytes that settles.
 */
static struct error *scan_first_words(const struct scan *scan,
				      struct scanner *scanner,
				      struct memory_range range,
				      allocation_id source,
				      const uint8_t *bytes, uint64_t size,
				      uint64_t *ret_size)
{
	uint64_t words[FIRST_WORDS] = { 0 };
	unsigned int leftovers;

	*ret_size = 0;
	size = size < sizeof(words) ? size & ~UINT64_C(7) : sizeof(words);
	memcpy(words, bytes, size);
	leftovers = allocation_leftovers(scan->index, range.start, words);
	if (!leftovers)
		return NULL;
	for (unsigned int i = 0; i < size / 8; i++) {
		struct error *error = NULL;

		if (!(leftovers >> i & 1))
			error = scan_words(scan, scanner, source, bytes + 8 * i,
					   8);
		if (error)
			return error;
	}
	*ret_size = size;
	return NULL;
}

static struct error *scan_allocation(const struct scan *scan,
				     struct scanner *scanner,
				     struct memory_range range,
				     allocation_id source)
{
	uint64_t first = range.start, done = 0;

	while (range.start < range.end) {
		struct error *error = NULL;
		uint64_t size;
		const uint8_t *bytes =
			find_bytes(scan, scanner, range.start, &size);

		/* What is absent refers to nothing; findings tell of it. */
		if (!bytes) {
			range.start = end_of_absence(scan, range);
			continue;
		}
		if (size > range.end - range.start)
			size = range.end - range.start;
		if (size > PIECE)
			size = PIECE;
		if (range.start == first)
			error = scan_first_words(scan, scanner, range, source,
						 bytes, size, &done);
		if (!error)
			error = scan_words(scan, scanner, source, bytes + done,
					   size - done);
		if (error)
			return error;
		done = 0;
		range.start += size;
		/* What was never touched is a hole of the dump. */
		if (size == PIECE && range.start < range.end)
			range.start = image_next_data(scan->image, range.start);
	}
	return NULL;
}

/* Make the lengths of a share's rows into their beginnings. */
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
				    "more than 4,294,967,295 references "
				    "between %d allocations and others",
				    SHARE);
	share->count = (uint32_t)total;
	return NULL;
}

/* Now that the arrays no longer move, let the shares point into them. */
static struct error *place_shares(struct graph *graph, const size_t *counts)
{
	for (unsigned int i = 0; i < graph->array_count; i++) {
		struct error *error = memory_resize(
			&graph->arrays[i], counts[i] * sizeof(allocation_id));

		if (error)
			return error;
		graph->edge_count += counts[i];
	}
	for (size_t i = 0; i < graph->share_count; i++) {
		struct share *share = &graph->shares[i];
		const allocation_id *array = graph->arrays[share->array].bytes;

		share->targets = share->count ? array + share->begin : NULL;
	}
	return NULL;
}

/* Whether what the allocation holds can refer to anything. */
static bool is_source(const struct scan *scan, size_t id)
{
	return bitmap_get(scan->used, id) &&
	       !(scan->pointerless && bitmap_get(scan->pointerless, id));
}

static struct error *scan_share(void *data, size_t number, unsigned int thread)
{
	struct scan *scan = data;
	struct graph *graph = scan->graph;
	struct scanner *scanner = &scan->scanners[thread];
	size_t first = number << SHARE_BITS, end = first + SHARE;
	struct error *error = NULL;
	uint64_t bytes = 0;

	if (end > graph->count)
		end = graph->count;
	graph->shares[number].array = thread;
	graph->shares[number].begin = scanner->edge_count;
	scanner->last_source = NO_ALLOCATION;
	for (size_t id = first; id < end && !error; id++) {
		struct memory_range range;

		if (!is_source(scan, id))
			continue;
		range = allocation_range_near(scan->index, (allocation_id)id,
					      &scanner->source_hint);
		error = scan_allocation(scan, scanner, range,
					(allocation_id)id);
		bytes += range.end - range.start;
	}
	if (!error)
		error = look_up(scan, scanner);
	if (!error)
		error = lay_out_share(graph, number);
	if (!error &&
	    !split_work_step(&scan->work, thread, scan->progress, bytes))
		error = error_create(ERROR_INTERRUPTED, "interrupted");
	return error;
}

static struct error *scan_all(struct scan *scan)
{
	struct graph *graph = scan->graph;
	unsigned int threads = graph->array_count;
	_cleanup_(free) size_t *counts = calloc(threads, sizeof(*counts));
	struct error *error;

	scan->scanners = calloc(threads, sizeof(*scan->scanners));
	if (!scan->scanners || !counts) {
		free(scan->scanners);
		return &error_no_memory;
	}
	for (unsigned int i = 0; i < threads; i++)
		scan->scanners[i].edges = &graph->arrays[i];
	error = parallel_for(graph->share_count, threads, scan_share, scan);
	for (unsigned int i = 0; i < threads; i++)
		counts[i] = scan->scanners[i].edge_count;
	free(scan->scanners);
	split_work_keep(&scan->work, scan->progress);
	return error ? error : place_shares(graph, counts);
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
		.pointerless = allocation_having(index, TRAIT_POINTERLESS),
		.bounds = allocation_bounds(index),
		.progress = progress,
	};
	struct error *error =
		create(allocation_count(index), parallel_threads_for(progress),
		       account, &graph);

	if (error)
		return error;
	progress_begin(progress, "scanning for references", image_size(image));
	scan.graph = graph;
	error = scan_all(&scan);
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
	uint32_t end = share->count;

	if ((id + 1) % SHARE != 0 && id + 1 < graph->count)
		end = offsets[id + 1];
	if (end == offsets[id])
		return (struct edges){ NULL, 0 };
	return (struct edges){ share->targets + offsets[id],
			       end - offsets[id] };
}

void graph_fetch_offset(const struct graph *graph, allocation_id id)
{
	__builtin_prefetch((const uint32_t *)graph->offsets.bytes + id);
}

void graph_fetch_row(const struct graph *graph, allocation_id id)
{
	const uint32_t *offsets = graph->offsets.bytes;
	const struct share *share = &graph->shares[id >> SHARE_BITS];

	if (share->targets)
		__builtin_prefetch(share->targets + offsets[id]);
}

/* Working storage of graph_transpose(). */
struct turning {
	const struct graph *from;
	struct graph *to;
	struct memory last; /* by target: 1 + the source seen last, or 0 */
	bool is_marked;	    /* last is not all zero */
	struct progress *progress;
};

/* Whether the edge stands in its row before. In a long one, marks tell. */
static bool is_repeated(struct turning *turning, allocation_id source,
			struct edges edges, size_t place)
{
	enum { SHORT = 16 };
	uint32_t *last = turning->last.bytes;
	allocation_id target = edges.targets[place];

	if (edges.count <= SHORT) {
		for (size_t i = 0; i < place; i++)
			if (edges.targets[i] == target)
				return true;
		return false;
	}
	if (last[target] == source + 1)
		return true;
	last[target] = source + 1;
	turning->is_marked = true;
	return false;
}

/* Call visit for each source of each target once, sources upwards. */
static struct error *visit_edges(struct turning *turning,
				 void (*visit)(struct turning *turning,
					       allocation_id source,
					       allocation_id target))
{
	if (turning->is_marked)
		memset(turning->last.bytes, 0, turning->last.size);
	turning->is_marked = false;
	for (size_t id = 0; id < turning->from->count; id++) {
		struct edges edges =
			graph_outgoing(turning->from, (allocation_id)id);

		for (size_t i = 0; i < edges.count; i++)
			if (!is_repeated(turning, (allocation_id)id, edges, i))
				visit(turning, (allocation_id)id,
				      edges.targets[i]);
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
	const struct share *share = &turning->to->shares[target >> SHARE_BITS];
	uint32_t *offsets = turning->to->offsets.bytes;
	allocation_id *sources = turning->to->arrays[0].bytes;

	sources[share->begin + offsets[target]++] = source;
}

/* Make room for all rows, of which the lengths are known. */
static struct error *lay_out(struct graph *graph)
{
	size_t total = 0;

	for (size_t i = 0; i < graph->share_count; i++) {
		struct error *error = lay_out_share(graph, i);

		if (error)
			return error;
		graph->shares[i].begin = total;
		total += graph->shares[i].count;
	}
	return memory_resize(&graph->arrays[0], total * sizeof(allocation_id));
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
	size_t total;
	struct error *error =
		memory_resize(&turning->last, to->count * sizeof(uint32_t));

	if (!error)
		error = visit_edges(turning, count_edge);
	if (!error)
		error = lay_out(to);
	if (!error)
		error = visit_edges(turning, place_edge);
	if (error)
		return error;
	for (size_t i = 0; i < to->share_count; i++)
		shift_share(to, i);
	total = to->arrays[0].size / sizeof(allocation_id);
	return place_shares(to, &total);
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
	struct error *error = create(graph->count, 1, account, &to);

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

/* Working storage of graph_narrow(). */
struct narrowing {
	const struct graph *from;
	struct graph *to;
	size_t (*narrow)(void *data, allocation_id source,
			 allocation_id *targets, size_t count);
	void *data;
	size_t edge_count; /* so far */
};

static struct error *narrow_row(struct narrowing *narrowing, allocation_id id)
{
	struct edges edges = graph_outgoing(narrowing->from, id);
	struct memory *array = &narrowing->to->arrays[0];
	uint32_t *offsets = narrowing->to->offsets.bytes;
	struct error *error;
	allocation_id *row;
	size_t left;

	if (edges.count == 0)
		return NULL;
	error = memory_reserve(array, (narrowing->edge_count + edges.count) *
					      sizeof(*row));
	if (error)
		return error;
	row = (allocation_id *)array->bytes + narrowing->edge_count;
	memcpy(row, edges.targets, edges.count * sizeof(*row));
	left = narrowing->narrow(narrowing->data, id, row, edges.count);
	offsets[id] = (uint32_t)left;
	narrowing->edge_count += left;
	return NULL;
}

static struct error *narrow_share(struct narrowing *narrowing, size_t number)
{
	struct graph *to = narrowing->to;
	size_t first = number << SHARE_BITS, end = first + SHARE;
	struct error *error = NULL;

	to->shares[number].begin = narrowing->edge_count;
	for (size_t id = first; !error && id < end && id < to->count; id++)
		error = narrow_row(narrowing, (allocation_id)id);
	return error ? error : lay_out_share(to, number);
}

struct error *graph_narrow(const struct graph *graph,
			   size_t (*narrow)(void *data, allocation_id source,
					    allocation_id *targets,
					    size_t count),
			   void *data, struct memory_account *account,
			   struct progress *progress, struct graph **ret)
{
	_cleanup_(graph_destroy) struct graph *to = NULL;
	struct narrowing narrowing = { .from = graph,
				       .narrow = narrow,
				       .data = data };
	struct error *error = create(graph->count, 1, account, &to);

	narrowing.to = to;
	for (size_t i = 0; !error && i < to->share_count; i++) {
		error = narrow_share(&narrowing, i);
		if (!error && !progress_step(progress, SHARE))
			error = error_create(ERROR_INTERRUPTED, "interrupted");
	}
	if (!error)
		error = place_shares(to, &narrowing.edge_count);
	if (error)
		return error;
	*ret = take(to);
	return NULL;
}
