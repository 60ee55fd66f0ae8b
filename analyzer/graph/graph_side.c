/*
 * The graph and liveness in a side file. What is large stays there: it is mapped. What is loaded is
 * checked, so that every id is that of an allocation, whatever the file says; that it is true is
 * not checked.
 */
#include "analyzer/graph/graph_parts.h"
#include "analyzer/graph/liveness.h"
#include "analyzer/heap/index_side.h"

#include <string.h>

static struct error *damaged(void)
{
	return error_create(ERROR_BAD_DUMP, "it is damaged");
}

/* Allocations from first on that are in the share. */
static size_t row_count(const struct graph *graph, size_t share)
{
	size_t left = graph->count - (share << SHARE_BITS);

	return left < SHARE ? left : SHARE;
}

/* Save the beginnings of the share's rows in plain form. */
static struct error *save_begins(const struct graph *graph, size_t share,
				 struct side_writer *writer)
{
	size_t first = share << SHARE_BITS, count = row_count(graph, share);
	uint32_t begins[SHARE], begin = 0;

	for (size_t i = 0; i < count; i++) {
		begins[i] = begin;
		begin += (uint32_t)graph_row(graph, (allocation_id)(first + i)).count;
	}
	return side_writer_add(writer, begins, count * sizeof(*begins));
}

/* The share's rows one after the other, of which edges has room for all. */
static struct error *save_edges(const struct graph *graph, size_t share, allocation_id *edges,
				struct side_writer *writer)
{
	size_t first = share << SHARE_BITS, filled = 0;

	for (size_t i = 0; i < row_count(graph, share); i++) {
		struct edges row = graph_row(graph, (allocation_id)(first + i));

		if (row.count)
			memcpy(edges + filled, row.targets, row.count * sizeof(*edges));
		filled += row.count;
	}
	return side_writer_add(writer, edges, filled * sizeof(*edges));
}

static struct error *save_share(const struct graph *graph, size_t number, struct memory *buffer,
				struct side_writer *writer)
{
	const struct share *share = &graph->shares[number];
	size_t size = share->count * sizeof(allocation_id);

	if (!share->is_compact)
		return side_writer_add(writer, share->targets, size);
	TRY(memory_reserve(buffer, size));
	return save_edges(graph, number, buffer->bytes, writer);
}

/* All shares' rows one after the other, whichever thread found them. */
struct error *graph_save(const struct graph *graph, struct side_writer *writer)
{
	_cleanup_(memory_release) struct memory buffer = { .account = graph->account };

	side_writer_begin(writer, SIDE_OFFSETS);
	for (size_t i = 0; i < graph->share_count; i++)
		TRY(save_begins(graph, i, writer));
	side_writer_begin(writer, SIDE_SHARES);
	for (size_t i = 0; i < graph->share_count; i++)
		TRY(side_writer_add(writer, &graph->shares[i].count, sizeof(uint32_t)));
	side_writer_begin(writer, SIDE_EDGES);
	for (size_t i = 0; i < graph->share_count; i++)
		TRY(save_share(graph, i, &buffer, writer));
	return NULL;
}

/* True if the rows of the share follow each other, up to its end. */
static bool check_offsets(const uint32_t *offsets, size_t count, uint32_t end)
{
	bool descends = count > 0 && offsets[0] != 0;

	for (size_t i = 1; i < count; i++)
		descends |= offsets[i] < offsets[i - 1];
	return !descends && (count == 0 || offsets[count - 1] <= end);
}

/*
 * True if only used allocations of a share, from first on, have edges: code that follows edges
 * relies on it.
 */
static bool check_sources(const uint32_t *offsets, size_t count, uint32_t end,
			  const struct bitmap *used, size_t first)
{
	for (size_t i = 0; i < count; i++)
		if (!bitmap_get(used, first + i) &&
		    offsets[i] != (i + 1 < count ? offsets[i + 1] : end))
			return false;
	return true;
}

static bool check_targets(const allocation_id *targets, size_t count, size_t allocations)
{
	allocation_id highest = 0;

	for (size_t i = 0; i < count; i++)
		if (targets[i] > highest)
			highest = targets[i];
	return count == 0 || highest < allocations;
}

/* Point the shares into the edges of the file. */
static struct error *load_shares(struct graph *graph, const uint32_t *counts,
				 const struct side_array *edges, const struct bitmap *used)
{
	const uint32_t *offsets = graph->words.items;
	const allocation_id *targets = edges->bytes;
	size_t left = edges->size / sizeof(*targets), begin = 0;

	for (size_t i = 0; i < graph->share_count; i++) {
		size_t first = i << SHARE_BITS, count = row_count(graph, i);

		if (counts[i] > left - begin || !check_offsets(offsets + first, count, counts[i]) ||
		    !check_sources(offsets + first, count, counts[i], used, first))
			return damaged();
		graph->shares[i] = (struct share){
			.targets = counts[i] ? targets + begin : NULL,
			.count = counts[i],
			.begin = begin,
		};
		begin += counts[i];
	}
	if (begin != left || edges->size % sizeof(*targets) != 0 ||
	    !check_targets(targets, left, graph->count))
		return damaged();
	graph->edge_count = left;
	return NULL;
}

struct error *graph_load(struct side_file *file, const struct bitmap *used,
			 struct memory_account *account, struct graph **ret)
{
	size_t count = used->count;
	_cleanup_(graph_destroy) struct graph *graph = NULL;
	struct side_array edges;
	const void *offsets, *counts;

	TRY(side_file_take(file, SIDE_OFFSETS, count, sizeof(uint32_t), &offsets));
	TRY(side_file_take(file, SIDE_SHARES, (count + SHARE - 1) / SHARE, sizeof(uint32_t),
			   &counts));
	TRY(side_file_find(file, SIDE_EDGES, &edges));
	TRY(graph_create_empty(count, 1, account, &graph));
	graph->words.memory = side_memory(offsets, count * sizeof(uint32_t));
	graph->arrays[0].memory = side_memory(edges.bytes, edges.size);
	TRY(load_shares(graph, counts, &edges, used));
	*ret = take(graph);
	return NULL;
}

struct error *liveness_save(const struct liveness *liveness, struct side_writer *writer)
{
	TRY(allocation_set_save(&liveness->leaked, writer, SIDE_LEAKED));
	TRY(allocation_set_save_some(&liveness->garbage, writer, SIDE_GARBAGE));
	TRY(allocation_set_save_some(&liveness->held, writer, SIDE_LOST_HELD));
	return allocation_set_save_some(&liveness->all, writer, SIDE_LOST);
}

/* True if leaked, garbage and held allocations partition the unreachable ones. */
static bool check_liveness(const struct liveness *liveness, const struct bitmap *used,
			   const struct bitmap *anchored)
{
	const struct bitmap *garbage = &liveness->garbage, *held = &liveness->held;
	bool collected = garbage->words;

	if (!held->words != !collected || !liveness->all.words != !collected)
		return false;
	for (size_t i = 0; i < bitmap_word_count(used); i++) {
		uint64_t lost = used->words[i] & ~anchored->words[i];
		uint64_t leaked = liveness->leaked.words[i];
		uint64_t freed = collected ? garbage->words[i] : 0;
		uint64_t kept = collected ? held->words[i] : 0;

		if (anchored->words[i] & ~used->words[i] || (leaked ^ freed ^ kept) != lost ||
		    (leaked | freed | kept) != lost || leaked & freed ||
		    (collected && liveness->all.words[i] != lost))
			return false;
	}
	return true;
}

struct error *liveness_load(struct side_file *file, const struct bitmap *used,
			    const struct bitmap *anchored, struct liveness *ret)
{
	_cleanup_(liveness_deinit) struct liveness liveness = { 0 };
	size_t count = used->count;

	TRY(allocation_set_load(file, SIDE_LEAKED, count, &liveness.leaked));
	TRY(allocation_set_load_some(file, SIDE_GARBAGE, count, &liveness.garbage));
	TRY(allocation_set_load_some(file, SIDE_LOST_HELD, count, &liveness.held));
	TRY(allocation_set_load_some(file, SIDE_LOST, count, &liveness.all));
	if (!check_liveness(&liveness, used, anchored))
		return damaged();
	*ret = take_struct(liveness);
	return NULL;
}
