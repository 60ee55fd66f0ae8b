#include "analyzer/graph/graph_parts.h"

#include "analyzer/base/list.h"

#include <assert.h>
#include <string.h>

struct error *graph_create_empty(size_t count, unsigned int arrays, struct memory_account *account,
				 struct graph **ret)
{
	_cleanup_(graph_destroy) struct graph *graph = calloc(1, sizeof(*graph));

	TRY_MEMORY(graph);
	graph->account = account;
	graph->count = count;
	graph->words.memory.account = account;
	graph->shares = calloc(count / SHARE + 1, sizeof(*graph->shares));
	graph->arrays = calloc(arrays, sizeof(*graph->arrays));
	TRY_MEMORY(graph->shares && graph->arrays);
	graph->share_count = (count + SHARE - 1) / SHARE;
	graph->array_count = arrays;
	for (unsigned int i = 0; i < arrays; i++)
		graph->arrays[i].memory.account = account;
	*ret = take(graph);
	return NULL;
}

struct error *graph_create_rows(size_t count, unsigned int arrays, struct memory_account *account,
				struct graph **ret)
{
	_cleanup_(graph_destroy) struct graph *graph = NULL;

	TRY(graph_create_empty(count, arrays, account, &graph));
	TRY(array_resize(&graph->words, count + 1));
	*ret = take(graph);
	return NULL;
}

void graph_destroy(struct graph *graph)
{
	for (unsigned int i = 0; i < graph->array_count; i++)
		array_release(&graph->arrays[i]);
	array_release(&graph->words);
	free(graph->arrays);
	free(graph->shares);
	free(graph);
}

struct error *graph_lay_out_share(struct graph *graph, size_t number)
{
	struct share *share = &graph->shares[number];
	uint32_t *offsets = graph->words.items;
	size_t first = number << SHARE_BITS, end = first + SHARE;
	uint64_t total = 0;

	for (size_t id = first; id < end && id < graph->count; id++) {
		uint32_t length = offsets[id];

		offsets[id] = (uint32_t)total;
		total += length;
	}
	if (total > UINT32_MAX)
		return error_create(
			ERROR_NOT_SUPPORTED,
			"more than 4,294,967,295 references between %d allocations and others",
			SHARE);
	share->count = (uint32_t)total;
	return NULL;
}

/* True if all rows of the share are short enough for one word to encode. */
static bool has_short_rows(const uint32_t *lengths, size_t count)
{
	uint32_t all = 0;

	for (size_t i = 0; i < count; i++)
		all |= lengths[i];
	return all >> ROW_LENGTH_BITS == 0;
}

bool graph_compact_share(struct graph *graph, size_t number, const allocation_id *from,
			 size_t count, allocation_id *to, size_t *ret)
{
	size_t first = number << SHARE_BITS, rows = graph->count - first;
	uint32_t *words = graph->words.items + first;
	size_t left = 0;

	rows = MIN(rows, SHARE);
	if (graph->count > ROW_APART || count >> ROW_BEGIN_BITS || !has_short_rows(words, rows))
		return false;
	/* The next length is unpredictable, so avoid branches. */
	for (size_t i = 0; i < rows; i++) {
		uint32_t length = words[i];
		bool is_apart = length != 1;

		memcpy(to + left, from, ROW_ROOM * sizeof(*to));
		if (length > ROW_ROOM)
			memcpy(to + left, from, length * sizeof(*to));
		words[i] = is_apart ? ROW_APART | length << ROW_BEGIN_BITS | (uint32_t)left : *from;
		left += is_apart ? length : 0;
		from += length;
	}
	graph->shares[number].count = (uint32_t)count;
	graph->shares[number].is_compact = true;
	*ret = left;
	return true;
}

struct error *graph_place_shares(struct graph *graph, const size_t *counts)
{
	for (unsigned int i = 0; i < graph->array_count; i++)
		TRY(array_resize(&graph->arrays[i], counts[i]));
	list_for_each(share, graph->shares, graph->share_count) {
		const allocation_id *array = graph->arrays[share->array].items;

		share->targets = share->count ? array + share->begin : NULL;
		graph->edge_count += share->count;
	}
	return NULL;
}

uint64_t graph_edge_count(const struct graph *graph)
{
	return graph->edge_count;
}

struct edges graph_outgoing(const struct graph *graph, allocation_id id)
{
	return graph_row(graph, id);
}

void graph_fetch_offset(const struct graph *graph, allocation_id id)
{
	__builtin_prefetch(graph->words.items + id);
}

void graph_fetch_row(const struct graph *graph, allocation_id id)
{
	__builtin_prefetch(graph_row(graph, id).targets);
}

/* Working storage of graph_narrow(). */
struct narrowing {
	const struct graph *from;
	struct graph *to;
	size_t (*narrow)(void *data, allocation_id source, allocation_id *targets, size_t count);
	void *data;
	size_t edge_count; /* so far */
	size_t more;	   /* edges that a row may get */
};

static struct error *narrow_row(struct narrowing *narrowing, allocation_id id)
{
	struct edges edges = graph_outgoing(narrowing->from, id);
	struct memory *array = &narrowing->to->arrays[0].memory;
	uint32_t *offsets = narrowing->to->words.items;
	allocation_id *row;
	size_t left;

	if (edges.count == 0)
		return NULL;
	TRY(memory_reserve(array,
			   (narrowing->edge_count + edges.count + narrowing->more) * sizeof(*row)));
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

	to->shares[number].begin = narrowing->edge_count;
	for (size_t id = first; id < end && id < to->count; id++)
		TRY(narrow_row(narrowing, (allocation_id)id));
	return graph_lay_out_share(to, number);
}

struct error *graph_narrow(const struct graph *graph, size_t more,
			   size_t (*narrow)(void *data, allocation_id source,
					    allocation_id *targets, size_t count),
			   void *data, struct memory_account *account, struct progress *progress,
			   struct graph **ret)
{
	_cleanup_(graph_destroy) struct graph *to = NULL;
	struct narrowing narrowing = {
		.from = graph, .narrow = narrow, .data = data, .more = more
	};

	TRY(graph_create_rows(graph->count, 1, account, &to));
	narrowing.to = to;
	for (size_t i = 0; i < to->share_count; i++) {
		TRY(narrow_share(&narrowing, i));
		TRY(progress_check(progress, SHARE));
	}
	TRY(graph_place_shares(to, &narrowing.edge_count));
	*ret = take(to);
	return NULL;
}
