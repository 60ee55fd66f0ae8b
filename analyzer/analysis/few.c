/*
 * Answers about a few allocations, for which no stage of all is built.
 */
#include "analyzer/analysis/parts.h"
#include "analyzer/base/sort.h"
#include "analyzer/classify/reader.h"

struct error *analysis_incoming_of(struct analysis *analysis, allocation_id id,
				   const struct graph **ret)
{
	bool is_lost = !analysis->incoming && bitmap_get(analysis_unreachable(analysis), id);
	struct error *error = NULL;

	/* Only unreachable allocations refer to unreachable ones: they are few. */
	if (!is_lost)
		error = analysis_need(analysis, STAGE_INCOMING);
	else if (!analysis->incoming_lost)
		error = graph_transpose_to(analysis->graph, analysis_unreachable(analysis),
					   analysis_unreachable(analysis), &analysis->account,
					   analysis->progress, &analysis->incoming_lost);
	if (!error)
		*ret = is_lost ? analysis->incoming_lost : analysis->incoming;
	return error;
}

static uint64_t root_bytes(const struct roots *roots)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < root_range_count(roots); i++)
		bytes += root_range(roots, i).end - root_range(roots, i).start;
	return bytes;
}

/* Add what refers to the allocation, and what refers to that if it leads on. */
static struct error *add_sources(struct analysis *analysis, struct reader *reader, allocation_id id,
				 bool is_direct, struct bitmap *ret)
{
	const struct graph *incoming;
	struct error *error = analysis_incoming_of(analysis, id, &incoming);
	struct edges edges;

	if (error)
		return error;
	bitmap_set(ret, id);
	edges = graph_outgoing(incoming, id);
	for (size_t i = 0; i < edges.count && !error; i++) {
		bitmap_set(ret, edges.targets[i]);
		if (is_direct && patterns_lead_on(analysis->few_patterns, reader, edges.targets[i]))
			error = add_sources(analysis, reader, edges.targets[i], false, ret);
	}
	return error;
}

/* Those not known yet, in order, each once. */
static size_t choose_unknown(const struct patterns *patterns, const allocation_id *ids,
			     size_t count, allocation_id *ret)
{
	size_t chosen = 0, kept = 0;

	for (size_t i = 0; i < count; i++)
		if (!patterns_know(patterns, ids[i]))
			ret[chosen++] = ids[i];
	SORT(ret, chosen, compare_u32);
	for (size_t i = 0; i < chosen; i++)
		if (kept == 0 || ret[i] != ret[kept - 1])
			ret[kept++] = ret[i];
	return kept;
}

/* Find them, unless all of it would have cost a good part of what it takes for all: then of all. */
static struct error *find_few(struct analysis *analysis, const allocation_id *ids, size_t count)
{
	enum { PART = 8, EACH = 1 << 20 };
	_cleanup_(bitmap_deinit) struct bitmap sources = { 0 };
	struct error *error =
		bitmap_init(&sources, allocation_count(analysis->index), &analysis->account);
	struct reader reader;

	patterns_init_reader(analysis->few_patterns, &reader);
	for (size_t i = 0; i < count && !error; i++)
		error = add_sources(analysis, &reader, ids[i], true, &sources);
	if (error)
		return error;
	analysis->few_cost += root_bytes(analysis->roots) + EACH;
	bitmap_for_each(id, &sources)
		analysis->few_cost += allocation_size(analysis->index, (allocation_id)id);
	if (analysis->few_cost > image_size(analysis->image) / PART)
		return analysis_need(analysis, STAGE_OWNERS);
	return patterns_find_few(analysis->few_patterns, ids, count, &sources);
}

struct error *analysis_need_owners_of(struct analysis *analysis, const allocation_id *ids,
				      size_t count)
{
	_cleanup_(free) allocation_id *unknown = NULL;
	struct error *error = NULL;

	if (analysis->costs[STAGE_OWNERS].built)
		return NULL;
	error = analysis_need(analysis, STAGE_OBJECTS);
	if (!error && !analysis->few_patterns)
		error = patterns_create(analysis->image, analysis->program, analysis->index,
					analysis->roots, NULL, analysis->runtimes,
					&analysis->account, analysis->progress,
					&analysis->few_patterns);
	if (error)
		return error;
	if (!patterns_can_find_few(analysis->few_patterns))
		return analysis_need(analysis, STAGE_OWNERS);
	unknown = calloc(count + 1, sizeof(*unknown));
	if (!unknown)
		return &error_no_memory;
	count = choose_unknown(analysis->few_patterns, ids, count, unknown);
	return count ? find_few(analysis, unknown, count) : NULL;
}

struct patterns *analysis_owners(const struct analysis *analysis)
{
	return analysis->costs[STAGE_OWNERS].built ? analysis->patterns : analysis->few_patterns;
}
