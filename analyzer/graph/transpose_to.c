#include "analyzer/graph/graph_parts.h"

/* A reference to one of the targets. */
struct reference {
	allocation_id source, target;
};

struct collector {
	ARRAY(struct reference) references; /* by source */
	struct graph *to;
};

static struct error *collect_row(struct collector *collector, const struct graph *graph,
				 const struct bitmap *targets, allocation_id source)
{
	struct edges edges = graph_row(graph, source);
	uint32_t *lengths = collector->to->words.items;

	for (size_t i = 0; i < edges.count; i++) {
		allocation_id target = edges.targets[i];

		if (!bitmap_get(targets, target))
			continue;
		TRY(array_append(&collector->references, (struct reference){ source, target }));
		lengths[target]++;
		collector->to->shares[target >> SHARE_BITS].count++;
	}
	return NULL;
}

/* Make lengths into where rows begin. Shares that nothing leads to are not touched. */
static struct error *lay_out(struct graph *to)
{
	size_t begin = 0;

	for (size_t i = 0; i < to->share_count; i++) {
		to->shares[i].begin = begin;
		begin += to->shares[i].count;
		if (to->shares[i].count)
			TRY(graph_lay_out_share(to, i));
	}
	return NULL;
}

/* Each word counts up from where its row begins to where it ends. */
static void fill(const struct collector *collector)
{
	const struct reference *references = collector->references.items;
	allocation_id *sources = collector->to->arrays[0].items;
	uint32_t *places = collector->to->words.items;

	for (size_t i = 0; i < collector->references.count; i++) {
		allocation_id target = references[i].target;

		sources[collector->to->shares[target >> SHARE_BITS].begin + places[target]++] =
			references[i].source;
	}
}

/* Leave out repeats, which follow each other; each word becomes where its row begins again. */
static void drop_repeats(struct graph *to, size_t number)
{
	struct share *share = &to->shares[number];
	allocation_id *sources = to->arrays[0].items + share->begin;
	uint32_t *places = to->words.items, at = 0, kept = 0;
	size_t first = number << SHARE_BITS, end = first + SHARE;

	for (size_t id = first; share->count && id < end && id < to->count; id++) {
		uint32_t row_end = places[id];

		places[id] = kept;
		for (uint32_t begin = kept; at < row_end; at++)
			if (kept == begin || sources[kept - 1] != sources[at])
				sources[kept++] = sources[at];
	}
	share->count = kept;
}

static struct error *collect(struct collector *collector, const struct graph *graph,
			     const struct bitmap *sources, const struct bitmap *targets,
			     struct progress *progress)
{
	uint64_t reported = 0;

	progress_begin(progress, "finding referrers", graph->count);
	bitmap_for_each(id, sources) {
		TRY(progress_check_at(progress, id, &reported));
		TRY(collect_row(collector, graph, targets, (allocation_id)id));
	}
	return NULL;
}

static struct error *make(struct collector *collector)
{
	struct graph *to = collector->to;

	TRY(lay_out(to));
	TRY(array_resize(&to->arrays[0], collector->references.count));
	fill(collector);
	for (size_t i = 0; i < to->share_count; i++)
		drop_repeats(to, i);
	return graph_place_shares(to, &collector->references.count);
}

struct error *graph_transpose_to(const struct graph *graph, const struct bitmap *sources,
				 const struct bitmap *targets, struct memory_account *account,
				 struct progress *progress, struct graph **ret)
{
	_cleanup_(graph_destroy) struct graph *to = NULL;
	_cleanup_(array_release) struct collector collector = {
		.references.memory.account = account,
	};

	TRY(graph_create_rows(graph->count, 1, account, &to));
	collector.to = to;
	TRY(collect(&collector, graph, sources, targets, progress));
	TRY(make(&collector));
	*ret = take(to);
	return NULL;
}
