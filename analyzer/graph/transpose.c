/*
 * Reverses all edges of a graph.
 *
 * To visit them by source and write each to its target would touch memory all over for each. So
 * they are sorted by bucket of targets first, then a bucket after the other is made into rows,
 * within the processor's cache:
 *
 *	edges by source   | unit | unit | unit | ...     counted, then sorted:
 *	                      \  /\ | \/ |
 *	edges by bucket   | bucket | bucket | bucket |   each by source, too
 *
 * A unit is so many edges, a bucket so many targets. How many of a unit go into which bucket is
 * counted first, so each has a place of its own there: units, and then buckets, are handed out to
 * threads, and nothing is shared. The order of sources stays as it was, so the result does not
 * depend on threads.
 *
 * What a long row has twice is left out when it is counted, so that a table which refers to the
 * same few all over takes no memory. Threads share what they saw, and overwrite it: some repeats
 * are missed, and found in the bucket.
 */
#include "analyzer/base/array.h"
#include "analyzer/base/list.h"
#include "analyzer/base/parallel.h"
#include "analyzer/base/sort.h"
#include "analyzer/graph/graph_parts.h"

#include <string.h>

enum {
	MOST_BUCKET_BITS = 16, /* a target's place in it fits a uint16_t */
	FEW_BUCKETS = 1 << 8,
	LEAST_UNIT = 1 << 14, /* edges; a multiple of 64 */
	MOST_UNITS = 1 << 10,
};

/* The state of a thread that builds rows of a bucket. */
struct turner {
	ARRAY(allocation_id) sources; /* sources of the bucket */
	ARRAY(allocation_id) last;    /* by target in the bucket */
};

struct turning {
	const struct graph *from;
	struct graph *to;
	struct progress *progress;
	struct split_work work; /* in edges */
	unsigned int threads;
	struct turner *turners; /* one for each thread */
	size_t edge_count;
	size_t unit, unit_count;
	ARRAY(uint32_t) seen;  /* by target: 1 + the source of a long row, or 0 */
	struct bitmap repeats; /* edges to be left out */
	unsigned int bucket_bits;
	size_t bucket_count;
	size_t *share_begins;  /* of from: edges in all shares before */
	size_t *bucket_begins; /* the same of buckets */
	ARRAY(size_t) places;  /* by unit, then bucket */
	ARRAY(uint16_t) lows;  /* by edge: its target in the bucket */
};

/* Edges of a share, those from begin on, below end. */
struct stretch {
	size_t share;
	uint32_t begin, end;
};

/* The share that has the edge. */
static size_t find_share(const struct turning *turning, size_t edge)
{
	return BISECT(i, 1, turning->from->share_count, turning->share_begins[i] <= edge) - 1;
}

/* Call visit for each stretch of the unit; how many edges it has. */
static size_t visit_unit(struct turning *turning, size_t unit,
			 void (*visit)(struct turning *turning, struct stretch stretch,
				       size_t *places))
{
	size_t edge = unit * turning->unit, first = edge;
	size_t end = turning->edge_count - edge < turning->unit ? turning->edge_count
								: edge + turning->unit;
	size_t *places = turning->places.items + unit * turning->bucket_count;

	for (size_t share = find_share(turning, edge); edge < end; share++) {
		size_t begin = turning->share_begins[share];
		size_t stop = turning->share_begins[share + 1];

		stop = MIN(stop, end);
		visit(turning,
		      (struct stretch){ share, (uint32_t)(edge - begin), (uint32_t)(stop - begin) },
		      places);
		edge = stop;
	}
	return end - first;
}

/* Edges of one row, as it goes on in a stretch. */
struct row_part {
	size_t id;
	uint32_t begin; /* of the row, among the edges of the share */
	const allocation_id *targets;
	uint32_t count;
};

/* The allocation of the plain share whose row has the edge. */
static size_t search_source(const struct graph *graph, size_t share, uint32_t edge)
{
	const uint32_t *begins = graph->words.items;
	size_t first = share << SHARE_BITS, end = first + SHARE;

	end = MIN(end, graph->count);
	return BISECT(id, first + 1, end, begins[id] <= edge) - 1;
}

/* The row that has the edge, of which no part was visited yet. */
static struct row_part find_row(const struct graph *graph, struct stretch stretch)
{
	struct row_part row = { .id = stretch.share << SHARE_BITS };
	uint32_t count;

	if (!graph->shares[stretch.share].is_compact) {
		row.id = search_source(graph, stretch.share, stretch.begin);
		row.begin = graph->words.items[row.id];
		return row;
	}
	while (count = (uint32_t)graph_row(graph, (allocation_id)row.id).count,
	       count <= stretch.begin - row.begin) {
		row.begin += count;
		row.id++;
	}
	return row;
}

/* The part of the row in the stretch, which then goes on behind it. */
static void take_part(const struct graph *graph, struct row_part *row, struct stretch *stretch)
{
	struct edges edges = graph_row(graph, (allocation_id)row->id);
	uint32_t skipped = stretch->begin - row->begin;

	row->targets = edges.targets + skipped;
	row->count = (uint32_t)edges.count - skipped;
	row->begin += (uint32_t)edges.count;
	row->count = MIN(row->count, stretch->end - stretch->begin);
	stretch->begin += row->count;
}

/* True if a row of the source is known to have the target already. */
static bool was_seen(const struct turning *turning, size_t source, allocation_id target)
{
	uint32_t *seen = turning->seen.items + target;

	if (__atomic_load_n(seen, __ATOMIC_RELAXED) == source + 1)
		return true;
	__atomic_store_n(seen, (uint32_t)(source + 1), __ATOMIC_RELAXED);
	return false;
}

static void count_stretch(struct turning *turning, struct stretch stretch, size_t *places)
{
	enum { SHORT = 16 };
	const struct graph *from = turning->from;
	struct row_part row = find_row(from, stretch);
	size_t edge = turning->share_begins[stretch.share] + stretch.begin;
	unsigned int bits = turning->bucket_bits;

	for (; stretch.begin < stretch.end; row.id++) {
		take_part(from, &row, &stretch);
		for (uint32_t i = 0; i < row.count; i++, edge++) {
			allocation_id target = row.targets[i];

			if (row.count > SHORT && was_seen(turning, row.id, target))
				bitmap_set(&turning->repeats, edge);
			else
				places[target >> bits]++;
		}
	}
}

static void sort_stretch(struct turning *turning, struct stretch stretch, size_t *places)
{
	const struct graph *from = turning->from;
	allocation_id *sources = turning->to->arrays[0].items;
	uint16_t *lows = turning->lows.items;
	struct row_part row = find_row(from, stretch);
	size_t edge = turning->share_begins[stretch.share] + stretch.begin;
	unsigned int bits = turning->bucket_bits;

	for (; stretch.begin < stretch.end; row.id++) {
		take_part(from, &row, &stretch);
		for (uint32_t i = 0; i < row.count; i++, edge++) {
			allocation_id target = row.targets[i];
			size_t place;

			if (bitmap_get(&turning->repeats, edge))
				continue;
			place = places[target >> bits]++;
			sources[place] = (allocation_id)row.id;
			lows[place] = (uint16_t)(target & ((1u << bits) - 1));
		}
	}
}

static struct error *take_unit(struct turning *turning, size_t unit, unsigned int thread,
			       void (*visit)(struct turning *turning, struct stretch stretch,
					     size_t *places))
{
	size_t edges = visit_unit(turning, unit, visit);

	return split_work_check(&turning->work, unit, thread, turning->progress, edges);
}

static struct error *count_unit(void *data, size_t unit, unsigned int thread)
{
	return take_unit(data, unit, thread, count_stretch);
}

static struct error *sort_unit(void *data, size_t unit, unsigned int thread)
{
	return take_unit(data, unit, thread, sort_stretch);
}

/* Make what units have for each bucket into where it goes. */
static void find_places(struct turning *turning)
{
	size_t *places = turning->places.items, edges = 0;

	for (size_t bucket = 0; bucket < turning->bucket_count; bucket++) {
		turning->bucket_begins[bucket] = edges;
		for (size_t unit = 0; unit < turning->unit_count; unit++) {
			size_t *place = &places[unit * turning->bucket_count + bucket];
			size_t count = *place;

			*place = edges;
			edges += count;
		}
	}
	turning->bucket_begins[turning->bucket_count] = edges;
}

/*
 * Count each target's sources. Those of one follow each other upwards, so the same one twice comes
 * twice in a row: it becomes NO_ALLOCATION.
 */
static void count_sources(allocation_id *sources, const uint16_t *lows, size_t count,
			  allocation_id *last, uint32_t *lengths)
{
	for (size_t i = 0; i < count; i++) {
		allocation_id source = sources[i];

		if (last[lows[i]] == source) {
			sources[i] = NO_ALLOCATION;
			continue;
		}
		last[lows[i]] = source;
		lengths[lows[i]]++;
	}
}

/* Move the beginnings, which are ends by now, one row up. */
static void shift_share(struct graph *graph, size_t number)
{
	uint32_t *offsets = graph->words.items, begin = 0;
	size_t first = number << SHARE_BITS, end = first + SHARE;

	for (size_t id = first; id < end && id < graph->count; id++) {
		uint32_t next = offsets[id];

		offsets[id] = begin;
		begin = next;
	}
}

/* Shares of the bucket, of which the first edge of all is at begin. */
static struct error *lay_out(struct turning *turning, size_t bucket)
{
	struct graph *to = turning->to;
	unsigned int bits = turning->bucket_bits - SHARE_BITS;
	size_t begin = turning->bucket_begins[bucket];

	for (size_t i = bucket << bits; i < (bucket + 1) << bits && i < to->share_count; i++) {
		TRY(graph_lay_out_share(to, i));
		to->shares[i].begin = begin;
		begin += to->shares[i].count;
	}
	return NULL;
}

/* offsets[] counts up from the row's beginning as the row fills. */
static void fill_rows(struct turning *turning, const allocation_id *sources, size_t bucket)
{
	struct graph *to = turning->to;
	size_t begin = turning->bucket_begins[bucket];
	size_t count = turning->bucket_begins[bucket + 1] - begin;
	const uint16_t *lows = turning->lows.items + begin;
	size_t first = bucket << turning->bucket_bits;
	uint32_t *offsets = to->words.items + first;
	const struct share *shares = &to->shares[first >> SHARE_BITS];
	allocation_id *edges = to->arrays[0].items;

	for (size_t i = 0; i < count; i++)
		if (sources[i] != NO_ALLOCATION)
			edges[shares[lows[i] >> SHARE_BITS].begin + offsets[lows[i]]++] =
				sources[i];
	for (size_t i = 0; i < (size_t)1 << (turning->bucket_bits - SHARE_BITS); i++)
		shift_share(to, (first >> SHARE_BITS) + i);
}

/* The bucket has count edges from begin on, more than none. */
static struct error *make_rows(struct turning *turning, struct turner *turner, size_t bucket,
			       size_t begin, size_t count)
{
	size_t targets = (size_t)1 << turning->bucket_bits;
	allocation_id *sources = turning->to->arrays[0].items + begin;

	TRY(array_reserve(&turner->sources, count));
	TRY(array_reserve(&turner->last, targets));
	memset(turner->last.items, 0xff, targets * sizeof(*sources));
	count_sources(sources, turning->lows.items + begin, count, turner->last.items,
		      turning->to->words.items + (bucket << turning->bucket_bits));
	TRY(lay_out(turning, bucket));
	memcpy(turner->sources.items, sources, count * sizeof(*sources));
	fill_rows(turning, turner->sources.items, bucket);
	return NULL;
}

static struct error *transpose_bucket(void *data, size_t bucket, unsigned int thread)
{
	struct turning *turning = data;
	size_t begin = turning->bucket_begins[bucket];
	size_t count = turning->bucket_begins[bucket + 1] - begin;

	if (count)
		TRY(make_rows(turning, &turning->turners[thread], bucket, begin, count));
	return split_work_check(&turning->work, bucket, thread, turning->progress, count);
}

/* Close the gaps of edges that were dropped as repeats. */
static struct error *close_gaps(struct turning *turning)
{
	enum { MANY = 32 };
	struct graph *to = turning->to;
	allocation_id *edges = to->arrays[0].items;
	size_t total = 0, size = to->arrays[0].count;
	struct error *error;

	for (size_t i = 0; i < to->share_count; i++)
		total += to->shares[i].count;
	/* Moving all edges costs more than a few gaps. */
	if (size - total > size / MANY) {
		size = 0;
		list_for_each(share, to->shares, to->share_count) {
			if (share->count)
				memmove(edges + size, edges + share->begin,
					share->count * sizeof(*edges));
			share->begin = size;
			size += share->count;
		}
	}
	error = graph_place_shares(to, &size);
	to->edge_count = total;
	return error;
}

static struct error *run(struct turning *turning, const char *task, size_t chunks,
			 struct error *(*work)(void *data, size_t chunk, unsigned int thread))
{
	progress_begin(turning->progress, task, turning->edge_count);
	return split_work_run(&turning->work, turning->progress, chunks, turning->threads, work,
			      turning);
}

/* Cut the edges into units and buckets. */
static struct error *cut(struct turning *turning)
{
	const struct graph *from = turning->from;
	size_t edges = 0, most;

	turning->bucket_bits = SHARE_BITS;
	while (turning->bucket_bits < MOST_BUCKET_BITS &&
	       from->count >> turning->bucket_bits > FEW_BUCKETS)
		turning->bucket_bits++;
	turning->bucket_count = (from->count >> turning->bucket_bits) + 1;
	turning->share_begins = calloc(from->share_count + 1, sizeof(*turning->share_begins));
	turning->bucket_begins = calloc(turning->bucket_count + 1, sizeof(*turning->bucket_begins));
	TRY_MEMORY(turning->share_begins && turning->bucket_begins);
	for (size_t i = 0; i < from->share_count; i++) {
		turning->share_begins[i] = edges;
		edges += from->shares[i].count;
	}
	turning->share_begins[from->share_count] = turning->edge_count = edges;
	turning->unit = edges / MOST_UNITS + 1;
	turning->unit = (turning->unit + LEAST_UNIT - 1) / LEAST_UNIT * LEAST_UNIT;
	turning->unit_count = (edges + turning->unit - 1) / turning->unit;
	/* Below so many edges for each, threads take more than they save. */
	most = turning->unit_count + 1;
	turning->threads = parallel_threads_for(turning->progress);
	if (turning->threads > most)
		turning->threads = (unsigned int)most;
	return NULL;
}

/* Find how many edges go into which bucket, and which repeat others. */
static struct error *count_edges(struct turning *turning)
{
	struct memory_account *account = turning->places.memory.account;

	TRY(array_resize(&turning->places, turning->unit_count * turning->bucket_count));
	TRY(array_resize(&turning->seen, turning->from->count));
	TRY(bitmap_init(&turning->repeats, turning->edge_count, account));
	TRY(run(turning, "counting referrers", turning->unit_count, count_unit));
	array_release(&turning->seen);
	return NULL;
}

static struct error *sort_edges(struct turning *turning)
{
	size_t left;

	find_places(turning);
	left = turning->bucket_begins[turning->bucket_count];
	TRY(array_resize(&turning->to->arrays[0], left));
	TRY(array_resize(&turning->lows, left));
	TRY(run(turning, "sorting references", turning->unit_count, sort_unit));
	array_release(&turning->places);
	bitmap_deinit(&turning->repeats);
	return NULL;
}

static struct error *transpose_buckets(struct turning *turning)
{
	turning->turners = calloc(turning->threads, sizeof(*turning->turners));
	TRY_MEMORY(turning->turners);
	for (unsigned int i = 0; i < turning->threads; i++)
		turning->turners[i] = (struct turner){
			.sources.memory.account = turning->places.memory.account,
			.last.memory.account = turning->places.memory.account,
		};
	return run(turning, "reversing references", turning->bucket_count, transpose_bucket);
}

static void turning_deinit(struct turning *turning)
{
	for (unsigned int i = 0; turning->turners && i < turning->threads; i++)
		arrays_release(&turning->turners[i].sources, &turning->turners[i].last);
	free(turning->turners);
	arrays_release(&turning->seen, &turning->places, &turning->lows);
	bitmap_deinit(&turning->repeats);
	free(turning->share_begins);
	free(turning->bucket_begins);
}
DEFINE_DEINIT(turning_deinit, struct turning)

struct error *graph_transpose(const struct graph *graph, struct memory_account *account,
			      struct progress *progress, struct graph **ret)
{
	_cleanup_(graph_destroy) struct graph *to = NULL;
	_cleanup_(turning_deinit) struct turning turning = {
		.from = graph,
		.progress = progress,
	};

	arrays_use(account, &turning.places, &turning.seen, &turning.lows);
	TRY(graph_create_rows(graph->count, 1, account, &to));
	turning.to = to;
	TRY(cut(&turning));
	TRY(count_edges(&turning));
	TRY(sort_edges(&turning));
	TRY(transpose_buckets(&turning));
	TRY(close_gaps(&turning));
	*ret = take(to);
	return NULL;
}
