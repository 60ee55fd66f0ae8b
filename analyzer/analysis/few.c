/*
 * Answers about a few allocations, for which no stage of all is built.
 */
#include "analyzer/analysis/parts.h"
#include "analyzer/base/array.h"
#include "analyzer/base/keep.h"
#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/classify/reader.h"
#include "analyzer/graph/disguises.h"

struct error *analysis_incoming_of(struct analysis *analysis, allocation_id id,
				   const struct graph **ret)
{
	bool is_lost = !analysis->incoming && bitmap_get(analysis_unreachable(analysis), id);

	/* Only unreachable allocations refer to unreachable ones: they are few. */
	if (!is_lost)
		TRY(analysis_need(analysis, STAGE_INCOMING));
	else if (!analysis->incoming_lost)
		TRY(graph_transpose_to(analysis->graph, analysis_unreachable(analysis),
				       analysis_unreachable(analysis), &analysis->account,
				       analysis->progress, &analysis->incoming_lost));
	*ret = is_lost ? analysis->incoming_lost : analysis->incoming;
	return NULL;
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
	struct edges edges;

	TRY(analysis_incoming_of(analysis, id, &incoming));
	bitmap_set(ret, id);
	edges = graph_outgoing(incoming, id);
	for (size_t i = 0; i < edges.count; i++) {
		bitmap_set(ret, edges.targets[i]);
		if (is_direct && patterns_lead_on(analysis->few_patterns, reader, edges.targets[i]))
			TRY(add_sources(analysis, reader, edges.targets[i], false, ret));
	}
	return NULL;
}

/* Choose those still unknown, in order, each once. */
static size_t choose_unknown(const struct patterns *patterns, const allocation_id *ids,
			     size_t count, allocation_id *ret)
{
	size_t chosen = 0;

	for (size_t i = 0; i < count; i++)
		if (!patterns_know(patterns, ids[i]))
			ret[chosen++] = ids[i];
	SORT(ret, chosen, compare_u32);
	return LIST_KEEP(ret, chosen, id, last, !last || *id != *last);
}

/* Find them, unless all of it would have cost a good part of what it takes for all: then of all. */
static struct error *find_few(struct analysis *analysis, const allocation_id *ids, size_t count)
{
	enum { PART = 8, EACH = 1 << 20 };
	_cleanup_(bitmap_deinit) struct bitmap sources = { 0 };
	struct reader reader;

	TRY(bitmap_init(&sources, allocation_count(analysis->index), &analysis->account));
	patterns_init_reader(analysis->few_patterns, &reader);
	for (size_t i = 0; i < count; i++)
		TRY(add_sources(analysis, &reader, ids[i], true, &sources));
	analysis->few_cost += root_bytes(analysis->roots) + EACH;
	bitmap_for_each(id, &sources)
		analysis->few_cost += allocation_size(analysis->index, (allocation_id)id);
	if (analysis->few_cost > analysis->image->size / PART)
		return analysis_need(analysis, STAGE_OWNERS);
	return patterns_find_few(analysis->few_patterns, ids, count, &sources);
}

struct error *analysis_need_owners_of(struct analysis *analysis, const allocation_id *ids,
				      size_t count)
{
	_cleanup_(free) allocation_id *unknown = NULL;

	analysis->few_asked = true;
	if (analysis->costs[STAGE_OWNERS].built)
		return NULL;
	TRY(analysis_need(analysis, STAGE_OBJECTS));
	if (!analysis->few_patterns) {
		const struct scan_input input = analysis_scan_input(analysis);

		TRY(patterns_create(&input, &analysis->few_patterns));
	}
	if (!patterns_can_find_few(analysis->few_patterns))
		return analysis_need(analysis, STAGE_OWNERS);
	unknown = calloc(count + 1, sizeof(*unknown));
	TRY_MEMORY(unknown);
	count = choose_unknown(analysis->few_patterns, ids, count, unknown);
	return count ? find_few(analysis, unknown, count) : NULL;
}

struct error *analysis_owners_among(struct analysis *analysis, const allocation_id *ids,
				    size_t count, const struct bitmap *sources,
				    struct patterns **ret)
{
	const struct scan_input input = analysis_scan_input(analysis);

	TRY(analysis_need(analysis, STAGE_OBJECTS));
	TRY(patterns_create(&input, ret));
	return patterns_find_few(*ret, ids, count, sources);
}

struct patterns *analysis_owners(const struct analysis *analysis)
{
	return analysis->costs[STAGE_OWNERS].built ? analysis->patterns : analysis->few_patterns;
}

/* Add what leads to the allocation. False: that is too much. */
static struct error *add_ancestors(struct analysis *analysis, allocation_id id, struct bitmap *ret,
				   bool *ret_few)
{
	enum { PART = 8 };
	size_t most = bitmap_weight(analysis_leaked(analysis)) / PART;
	ARRAY(allocation_id) list = { .memory.account = &analysis->account };
	const struct graph *incoming;
	struct error *error = analysis_incoming_of(analysis, id, &incoming);

	bitmap_set(ret, id);
	if (!error)
		error = array_append(&list, id);
	for (size_t at = 0; !error && at < list.count && analysis->few_leaks_cost <= most; at++) {
		struct edges edges = graph_outgoing(incoming, list.items[at]);

		analysis->few_leaks_cost++;
		for (size_t i = 0; i < edges.count && !error; i++) {
			if (!bitmap_get(ret, edges.targets[i]))
				error = array_append(&list, edges.targets[i]);
			bitmap_set(ret, edges.targets[i]);
		}
	}
	array_release(&list);
	*ret_few = analysis->few_leaks_cost <= most;
	return error;
}

struct error *analysis_need_leaks_to(struct analysis *analysis, allocation_id id)
{
	_cleanup_(bitmap_deinit) struct bitmap ancestors = { 0 };
	bool is_few = false;

	if (analysis_leaks_to(analysis, id))
		return NULL;
	if (analysis->few_leaks)
		leaks_destroy(take(analysis->few_leaks));
	TRY(bitmap_init(&ancestors, allocation_count(analysis->index), &analysis->account));
	TRY(add_ancestors(analysis, id, &ancestors, &is_few));
	if (is_few)
		TRY(leaks_create(analysis->graph, analysis->index, analysis->runtimes, &ancestors,
				 &analysis->account, analysis->progress, &analysis->few_leaks));
	analysis->few_leaks_of = id;
	/* Only the search for all leaks finds everything that is lost along with a root. */
	return !is_few || leak_root_find(analysis->few_leaks, id)
		       ? analysis_need(analysis, STAGE_LEAKS)
		       : NULL;
}

const struct leaks *analysis_leaks_to(const struct analysis *analysis, allocation_id id)
{
	if (analysis->leaks)
		return analysis->leaks;
	return analysis->few_leaks_of == id ? analysis->few_leaks : NULL;
}

struct error *analysis_need_disguised_of(struct analysis *analysis, const allocation_id *ids,
					 size_t count)
{
	enum { FEW = 64 };
	_cleanup_(bitmap_deinit) struct bitmap wanted = { 0 };
	const struct disguises_input input =
		analysis_disguises_input(analysis, allocation_used(analysis->index), &wanted);
	struct bitmap *known = &analysis->not_disguised;
	bool is_none = false;

	while (known->words && count > 0 && bitmap_get(known, ids[count - 1]))
		count--;
	if (count == 0 || analysis->costs[STAGE_DISGUISED].built)
		return NULL;
	if (known->words || count > FEW)
		return analysis_need(analysis, STAGE_DISGUISED);
	TRY(bitmap_init(&wanted, allocation_count(analysis->index), &analysis->account));
	for (size_t i = 0; i < count; i++)
		bitmap_set(&wanted, ids[i]);
	TRY(disguises_exclude(&input, &is_none));
	if (!is_none)
		return analysis_need(analysis, STAGE_DISGUISED);
	*known = take(wanted);
	return NULL;
}

enum { LARGEST_SAMPLED = 64, SPREAD_SAMPLED = 1024 };

/* Add the leak roots that own most. */
static void add_largest(const struct leaks *leaks, struct bitmap *sample)
{
	const struct leak_root *largest[LARGEST_SAMPLED + 1];
	size_t count = 0;

	list_for_each(root, leaks->roots, leaks->count) {
		size_t place = count;

		for (; place > 0 && largest[place - 1]->owned_bytes < root->owned_bytes; place--)
			largest[place] = largest[place - 1];
		largest[place] = root;
		count += count < LARGEST_SAMPLED;
	}
	for (size_t i = 0; i < count; i++)
		bitmap_set(sample, largest[i]->id);
}

/*
 * Set *ret_none if no disguised pointer from those in use to a wanted allocation counts, not even
 * one in leaked memory.
 */
static struct error *find_none_disguised(struct analysis *analysis, const struct bitmap *in_use,
					 const struct bitmap *wanted, bool *ret_none)
{
	const struct disguises_input input = analysis_disguises_input(analysis, in_use, wanted);
	_cleanup_(disguises_deinit) struct disguises found = { 0 };

	TRY(disguises_find(&input, &found));
	TRY(disguises_drop_chance(&input, &found));
	*ret_none = found.list.count == 0;
	return NULL;
}

/* How many leaked allocations have to be held in disguise, that it is not chance. */
static uint64_t least_disguised(const struct analysis *analysis)
{
	const struct bitmap *leaked = &analysis->liveness.leaked;
	const struct disguises all = { .words = analysis->image->size / sizeof(uint64_t) };
	uint64_t address = allocation_start(analysis->index, (allocation_id)bitmap_next(leaked, 0));

	return bitmap_weight(leaked) / (disguises_odds(&all, address) / LEAST_ODDS + 1);
}

/*
 * Look for all that leaked in all large allocations, and in so many small ones, chosen at random,
 * that several hundred are found if least are held.
 */
static struct error *sample_memory(struct analysis *analysis, uint64_t least, bool *ret_none)
{
	enum { LARGE = 512 };
	const struct bitmap *used = allocation_used(analysis->index);
	uint64_t part = (UINT64_C(1) << 32) / (least / (SPREAD_SAMPLED / 2));
	_cleanup_(bitmap_deinit) struct bitmap some = { 0 };

	TRY(bitmap_init(&some, used->count, &analysis->account));
	bitmap_for_each(id, used)
		if ((uint32_t)id * UINT32_C(0x9e3779b1) < part ||
		    allocation_size(analysis->index, (allocation_id)id) >= LARGE)
			bitmap_set(&some, id);
	return find_none_disguised(analysis, &some, analysis_leaked(analysis), ret_none);
}

struct error *analysis_sample_disguised(struct analysis *analysis, bool *ret_none)
{
	const struct bitmap *leaked = analysis_leaked(analysis);
	size_t step = bitmap_weight(leaked) / SPREAD_SAMPLED, number = 0;
	_cleanup_(bitmap_deinit) struct bitmap sample = { 0 };
	uint64_t least;

	*ret_none = false;
	if (step < 2 || analysis->costs[STAGE_DISGUISED].built)
		return NULL;
	least = least_disguised(analysis);
	if (least >= SPREAD_SAMPLED)
		return sample_memory(analysis, least, ret_none);
	TRY(bitmap_init(&sample, leaked->count, &analysis->account));
	bitmap_for_each(id, leaked)
		if (number++ % step == 0)
			bitmap_set(&sample, id);
	add_largest(analysis->leaks, &sample);
	return find_none_disguised(analysis, allocation_used(analysis->index), &sample, ret_none);
}

/* Stages to build once answers about few allocations have cost as much as these. */
static const enum stage ahead[] = {
	STAGE_LEAKS,
	STAGE_DISGUISED,
	STAGE_INCOMING,
	STAGE_OWNERS,
};

/* The first of these that is not there yet, or STAGES. */
static enum stage next_ahead(const struct analysis *analysis)
{
	for (size_t i = 0; i < COUNT_OF(ahead); i++)
		if (!analysis->costs[ahead[i]].built)
			return ahead[i];
	return STAGES;
}

bool analysis_has_ahead(const struct analysis *analysis)
{
	return analysis->few_asked && !analysis->ahead_ended && next_ahead(analysis) != STAGES;
}

struct error *analysis_build_ahead(struct analysis *analysis)
{
	struct memory_account *account = &analysis->account;
	size_t limit = account->limit;
	struct error *error = NULL;

	account->limit = (limit + 1) / 2;
	while (!error && analysis_has_ahead(analysis))
		error = analysis_need(analysis, next_ahead(analysis));
	account->limit = limit;
	analysis->ahead_ended = error && error_code(error) != ERROR_INTERRUPTED;
	return error;
}
