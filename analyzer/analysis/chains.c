#include "analyzer/analysis/chains.h"

#include <stdlib.h>

/* The anchors of so many are searched for one by one. */
enum { FEW = 4 };

struct chains {
	struct analysis *analysis;
	struct bitmap sources[CHAIN_SOURCES]; /* no words: not collected, or the roots' */
	struct distances *distances[CHAIN_SOURCES];
	size_t reached[CHAIN_SOURCES]; /* by all searches */
	struct anchors *anchors;
	unsigned int anchor_searches;
};

struct error *chains_create(struct analysis *analysis, struct chains **ret)
{
	struct chains *chains = calloc(1, sizeof(*chains));

	TRY_MEMORY(chains);
	chains->analysis = analysis;
	*ret = chains;
	return NULL;
}

void chains_destroy(struct chains *chains)
{
	for (size_t i = 0; chains && i < CHAIN_SOURCES; i++) {
		bitmap_deinit(&chains->sources[i]);
		if (chains->distances[i])
			distances_destroy(chains->distances[i]);
	}
	if (chains && chains->anchors)
		anchors_destroy(chains->anchors);
	free(chains);
}

static void add_leak_roots(const struct leaks *leaks, struct bitmap *ret)
{
	for (size_t i = 0; i < leaks->count; i++)
		bitmap_set(ret, leaks->roots[i].id);
}

static void add_roots(const struct roots *roots, struct bitmap *ret)
{
	for (enum root_kind kind = 0; kind < ROOT_KINDS; kind++)
		bitmap_or(ret, root_targets(roots, kind));
}

static void add_unseen(const struct analysis *analysis, struct bitmap *ret)
{
	const struct bitmap *managed = allocation_having(analysis_index(analysis), TRAIT_MANAGED);

	bitmap_or(ret, analysis_anchored(analysis));
	if (managed)
		bitmap_minus(ret, managed);
}

static struct error *collect_sources(struct chains *chains, enum chain_source source,
				     allocation_id target)
{
	struct analysis *analysis = chains->analysis;
	struct bitmap *sources = &chains->sources[source];

	TRY(bitmap_init(sources, allocation_count(analysis_index(analysis)),
			analysis_account(analysis)));
	if (source == CHAIN_ROOTS)
		add_roots(analysis_roots(analysis), sources);
	else if (source == CHAIN_LEAK_ROOT)
		add_leak_roots(analysis_leaks_to(analysis, target), sources);
	else if (source == CHAIN_UNSEEN)
		add_unseen(analysis, sources);
	else if (analysis_garbage(analysis))
		bitmap_or(sources, analysis_garbage(analysis));
	return NULL;
}

static struct error *find_sources(struct chains *chains, enum chain_source source,
				  allocation_id target, const struct bitmap **ret)
{
	struct bitmap *sources = &chains->sources[source];

	if ((unsigned int)source < ROOT_KINDS) {
		*ret = root_targets(analysis_roots(chains->analysis), (enum root_kind)source);
		return NULL;
	}
	*ret = sources;
	return sources->words ? NULL : collect_sources(chains, source, target);
}

/* True if the searches so far cost as much as computing all distances would. */
static bool are_many(const struct chains *chains, enum chain_source source, size_t count)
{
	enum { PART = 8 };

	return chains->reached[source] > count / PART;
}

struct error *chains_find_whole(struct chains *chains, enum chain_source source,
				allocation_id target, struct path *ret)
{
	struct analysis *analysis = chains->analysis;
	const struct bitmap *sources;
	const struct graph *incoming;

	TRY(find_sources(chains, source, target, &sources));
	TRY(analysis_incoming_of(analysis, target, &incoming));
	TRY(path_find(analysis_graph(analysis), incoming, sources, target,
		      analysis_account(analysis), analysis_progress(analysis), ret));
	chains->reached[source] += ret->reached;
	return NULL;
}

struct error *chains_find(struct chains *chains, enum chain_source source, allocation_id target,
			  struct path *ret)
{
	struct analysis *analysis = chains->analysis;
	struct distances **distances = &chains->distances[source];
	const struct bitmap *sources;
	const struct graph *incoming;

	TRY(find_sources(chains, source, target, &sources));
	if (!*distances && !are_many(chains, source, sources->count))
		return chains_find_whole(chains, source, target, ret);
	TRY(analysis_incoming_of(analysis, target, &incoming));
	if (!*distances)
		TRY(distances_create(analysis_graph(analysis), sources, analysis_account(analysis),
				     analysis_progress(analysis), distances));
	return distances_path(*distances, incoming, target, ret);
}

static bool take_anchor(void *data, const struct anchor *anchor)
{
	struct found_anchors *found = data;

	if (found->kind != ROOT_KINDS && anchor->kind != found->kind)
		return true;
	if (found->count < KEPT_ANCHORS)
		found->list[found->count] = *anchor;
	found->count++;
	return true;
}

/* In the roots, without the help of what was found for all. */
static struct error *search_anchors(struct analysis *analysis, allocation_id target,
				    struct found_anchors *ret)
{
	_cleanup_(bitmap_deinit) struct bitmap targets = { 0 };

	TRY(bitmap_init(&targets, allocation_count(analysis_index(analysis)),
			analysis_account(analysis)));
	bitmap_set(&targets, target);
	roots_visit(analysis_roots(analysis), &targets, take_anchor, ret);
	return NULL;
}

struct error *chains_find_anchors(struct chains *chains, allocation_id target, enum root_kind kind,
				  struct found_anchors *ret)
{
	struct analysis *analysis = chains->analysis;

	*ret = (struct found_anchors){ .kind = kind };
	if (!chains->anchors && ++chains->anchor_searches <= FEW)
		return search_anchors(analysis, target, ret);
	if (!chains->anchors)
		TRY(anchors_create(analysis_roots(analysis),
				   allocation_count(analysis_index(analysis)),
				   analysis_account(analysis), &chains->anchors));
	ret->count = anchors_find(chains->anchors, target, kind, ret->list);
	return NULL;
}
