/*
 * Anchored, leaked and at-risk allocations: builds the marks, and reports what the core cannot
 * show.
 */
#include "analyzer/analysis/parts.h"
#include "analyzer/base/text.h"
#include "analyzer/graph/disguises.h"
#include "analyzer/graph/signal_stacks.h"

#include <inttypes.h>

struct error *analysis_mark(struct analysis *analysis, enum root_kind first, enum root_kind last,
			    struct bitmap *ret)
{
	_cleanup_(bitmap_deinit) struct bitmap from = { 0 };
	size_t count = allocation_count(analysis->index);
	_cleanup_(bitmap_deinit) struct bitmap reached = { 0 };

	TRY(bitmap_init(&from, count, &analysis->account));
	TRY(bitmap_init(&reached, count, &analysis->account));
	for (enum root_kind kind = first; kind <= last; kind++)
		bitmap_or(&from, root_targets(analysis->roots, kind));
	TRY(graph_mark(analysis->graph, &from, &reached, &analysis->account, analysis->progress));
	bitmap_and(&reached, allocation_used(analysis->index));
	*ret = take(reached);
	return NULL;
}

struct disguises_input analysis_disguises_input(struct analysis *analysis,
						const struct bitmap *in_use,
						const struct bitmap *wanted)
{
	return (struct disguises_input){
		.image = analysis->image,
		.index = analysis->index,
		.roots = analysis->roots,
		.graph = analysis->graph,
		.in_use = in_use,
		.wanted = wanted,
		.disguises = analysis_is_narrow(analysis) ? 0 : DISGUISED_POINTERS,
		.account = &analysis->account,
		.progress = analysis->progress,
	};
}

/* Add what is held in disguise, if it is in targets, and what that leads to. */
static struct error *add_disguised(struct analysis *analysis, unsigned int disguises,
				   const struct bitmap *targets, struct bitmap *anchored)
{
	_cleanup_(bitmap_deinit) struct bitmap wanted = { 0 };
	_cleanup_(disguises_deinit) struct disguises found = { 0 };
	struct disguises_input input = analysis_disguises_input(analysis, anchored, &wanted);

	input.disguises = disguises;
	input.integers = disguises ? NULL : analysis->runtimes;
	input.targets = targets;
	TRY(bitmap_init_minus(&wanted, allocation_used(analysis->index), anchored,
			      &analysis->account));
	TRY(disguises_find(&input, &found));
	bitmap_or(anchored, &found.reached);
	return roots_add_integers(analysis->roots, found.list.items, found.list.count);
}

/* Add what collectors find that follow references at odd addresses. */
static struct error *add_packed(struct analysis *analysis, struct bitmap *anchored)
{
	const struct bitmap *collectable = allocation_having(analysis->index, TRAIT_COLLECTABLE);

	if (!collectable || !runtimes_packed(analysis->runtimes))
		return NULL;
	return add_disguised(analysis, 1U << DISGUISE_PACKED, collectable, anchored);
}

/* Add what integers of interpreters hold, where something would be lost. */
static struct error *add_integers(struct analysis *analysis, struct bitmap *anchored)
{
	const struct bitmap *collectable = allocation_having(analysis->index, TRAIT_COLLECTABLE);
	_cleanup_(bitmap_deinit) struct bitmap targets = { 0 };

	if (!runtimes_have_integers(analysis->runtimes))
		return NULL;
	/* No collector takes an integer for a reference. */
	TRY(bitmap_init_minus(&targets, allocation_used(analysis->index), collectable,
			      &analysis->account));
	return add_disguised(analysis, 0, &targets, anchored);
}

static void note_stacks(struct analysis *analysis, const struct bitmap *stacks)
{
	allocation_id first = (allocation_id)bitmap_next(stacks, 0);
	size_t count = bitmap_weight(stacks);
	char size[NUMBER_SIZE];

	findings_add(
		&analysis->findings, FINDING_NOTE,
		"the program calls sigaltstack(), and the core does not record its argument: %zu unreferenced block%s of %s bytes, %s 0x%" PRIx64
		", %s treated as alternate signal stacks ('heapcore run' sees the calls)",
		count, count == 1 ? "" : "s",
		grouped(allocation_size(analysis->index, first), size),
		count == 1 ? "at" : "first at", allocation_start(analysis->index, first),
		count == 1 ? "is" : "are");
}

/* Add what the kernel alone may hold, though the core does not say so. */
static struct error *add_signal_stacks(struct analysis *analysis, struct bitmap *anchored)
{
	_cleanup_(bitmap_deinit) struct bitmap unreachable = { 0 };
	_cleanup_(bitmap_deinit) struct bitmap stacks = { 0 };
	_cleanup_(bitmap_deinit) struct bitmap reached = { 0 };
	const struct signal_stacks_input input = {
		analysis->image, analysis->program, analysis->index,
		analysis->graph, &unreachable,	    &analysis->account,
	};

	TRY(bitmap_init_minus(&unreachable, allocation_used(analysis->index), anchored,
			      &analysis->account));
	TRY(signal_stacks_guess(&input, &stacks));
	if (!stacks.words)
		return NULL;
	note_stacks(analysis, &stacks);
	roots_assume_stacks(analysis->roots, &stacks);
	TRY(bitmap_init(&reached, anchored->count, &analysis->account));
	TRY(graph_mark(analysis->graph, &stacks, &reached, &analysis->account, analysis->progress));
	bitmap_and(&reached, &unreachable);
	bitmap_or(anchored, &reached);
	return NULL;
}

static struct error *find_counts(struct analysis *analysis, const struct bitmap *unreachable)
{
	const struct counts_input input = {
		.image = analysis->image,
		.index = analysis->index,
		.runtimes = analysis->runtimes,
		.unreachable = unreachable,
		.account = &analysis->account,
		.progress = analysis->progress,
	};

	if (analysis->counts_known || !runtimes_have_links(analysis->runtimes))
		return NULL;
	TRY(counts_find(&input, &analysis->counts));
	analysis->counts_known = true;
	return NULL;
}

struct error *analysis_lost_count(struct analysis *analysis, allocation_id id,
				  const struct lost_count **ret)
{
	*ret = counts_lost(&analysis->lost_counts, id);
	if (*ret || !analysis->costs[STAGE_REACHABILITY].built)
		return NULL;
	/* They are not in a side file. */
	TRY(find_counts(analysis, analysis_unreachable(analysis)));
	*ret = counts_lost(&analysis->counts, id);
	return NULL;
}

static struct error *judge_unreachable(struct analysis *analysis, const struct bitmap *anchored)
{
	_cleanup_(bitmap_deinit) struct bitmap unreachable = { 0 };

	TRY(bitmap_init_minus(&unreachable, allocation_used(analysis->index), anchored,
			      &analysis->account));
	TRY(find_counts(analysis, &unreachable));
	return liveness_init(&analysis->liveness, analysis->graph, analysis->index, anchored,
			     &analysis->counts, &analysis->account, analysis->progress);
}

struct error *build_reachability(struct analysis *analysis)
{
	_cleanup_(bitmap_deinit) struct bitmap anchored = { 0 };

	TRY(analysis_mark(analysis, ROOT_STATIC, ROOT_KERNEL, &anchored));
	TRY(add_packed(analysis, &anchored));
	TRY(add_integers(analysis, &anchored));
	TRY(add_signal_stacks(analysis, &anchored));
	TRY(judge_unreachable(analysis, &anchored));
	analysis->anchored = take(anchored);
	return NULL;
}

/* A custom mark function may mark more than we see. */
void analysis_doubt_risk(struct analysis *analysis)
{
	if (analysis->risk_doubted)
		return;
	analysis->risk_doubted = true;
	switch (heaps_more_roots(analysis->heaps)) {
	case MORE_ROOTS_CALLBACK:
		findings_add(
			&analysis->findings, FINDING_CAVEAT,
			"the program has mark functions of its own: what is reported as at risk may be safe");
		break;
	case MORE_ROOTS_UNKNOWN:
		findings_add(
			&analysis->findings, FINDING_CAVEAT,
			"the program may have mark functions of its own: if so, what is reported as at risk may be safe");
		break;
	default:
		break;
	}
}

/* At risk is only what the collector scans itself: others have each type mark what it holds. */
struct error *build_collector(struct analysis *analysis)
{
	const struct collector_input input = {
		.program = analysis->program,
		.index = analysis->index,
		.roots = analysis->roots,
		.graph = analysis->graph,
		.account = &analysis->account,
		.progress = analysis->progress,
	};
	const struct bitmap *collectable = allocation_having(analysis->index, TRAIT_COLLECTABLE);
	const struct bitmap *managed = allocation_having(analysis->index, TRAIT_MANAGED);
	_cleanup_(bitmap_deinit) struct bitmap kept = { 0 };
	struct bitmap at_risk = { 0 };

	if (!collectable || !managed)
		return NULL;
	TRY(collector_mark(&input, &kept));
	TRY(bitmap_init_minus(&at_risk, &analysis->anchored, &kept, &analysis->account));
	bitmap_and(&at_risk, collectable);
	bitmap_and(&at_risk, managed);
	analysis->at_risk = at_risk;
	return NULL;
}
