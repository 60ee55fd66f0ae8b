#include "analyzer/graph/graph_parts.h"

#include <assert.h>
#include <string.h>

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

struct error *graph_create_rows(size_t count, unsigned int arrays,
				struct memory_account *account,
				struct graph **ret)
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

struct error *graph_lay_out_share(struct graph *graph, size_t number)
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

struct error *graph_place_shares(struct graph *graph, const size_t *counts)
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
		struct error *error = graph_lay_out_share(graph, i);

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
	return graph_place_shares(to, &total);
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
	struct error *error = graph_create_rows(graph->count, 1, account, &to);

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
	return error ? error : graph_lay_out_share(to, number);
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
	struct error *error = graph_create_rows(graph->count, 1, account, &to);

	narrowing.to = to;
	for (size_t i = 0; !error && i < to->share_count; i++) {
		error = narrow_share(&narrowing, i);
		if (!error && !progress_step(progress, SHARE))
			error = error_create(ERROR_INTERRUPTED, "interrupted");
	}
	if (!error)
		error = graph_place_shares(to, &narrowing.edge_count);
	if (error)
		return error;
	*ret = take(to);
	return NULL;
}
