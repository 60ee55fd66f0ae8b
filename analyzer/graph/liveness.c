#include "analyzer/graph/liveness.h"

/* The state of the search; the liveness is the result. */
struct judge {
	const struct graph *graph;
	const struct allocation_index *index;
	const struct bitmap *collectable;
	struct memory_account *account;
	struct progress *progress;
	struct liveness *liveness;
};

void liveness_deinit(struct liveness *liveness)
{
	bitmap_deinit(&liveness->leaked);
	bitmap_deinit(&liveness->garbage);
	bitmap_deinit(&liveness->held);
	bitmap_deinit(&liveness->all);
}

/* The lost objects that the collector itself takes for roots. */
static struct error *find_keepers(const struct judge *judge, struct bitmap *ret)
{
	const struct bitmap *managed = allocation_having(judge->index, TRAIT_MANAGED);

	TRY(bitmap_init(ret, judge->liveness->leaked.count, judge->account));
	if (!managed)
		return NULL;
	bitmap_copy(ret, managed);
	bitmap_and(ret, &judge->liveness->leaked);
	bitmap_minus(ret, judge->collectable);
	return NULL;
}

/* Take out of the garbage what lost objects keep from being collected. */
static struct error *spare_kept(const struct judge *judge)
{
	_cleanup_(bitmap_deinit) struct bitmap keepers = { 0 };
	_cleanup_(bitmap_deinit) struct bitmap within = { 0 };
	_cleanup_(bitmap_deinit) struct bitmap kept = { 0 };
	struct liveness *liveness = judge->liveness;

	TRY(find_keepers(judge, &keepers));
	if (bitmap_weight(&keepers) == 0)
		return NULL;
	TRY(bitmap_init_minus(&within, &liveness->garbage, NULL, judge->account));
	TRY(bitmap_init(&kept, keepers.count, judge->account));
	bitmap_or(&within, &keepers);
	TRY(graph_mark_within(judge->graph, &within, &keepers, &kept, judge->account,
			      judge->progress));
	bitmap_minus(&liveness->garbage, &kept);
	return NULL;
}

/* Move from the leaked to the held what garbage leads to. */
static struct error *find_held(const struct judge *judge)
{
	struct liveness *liveness = judge->liveness;

	TRY(bitmap_init(&liveness->held, liveness->leaked.count, judge->account));
	TRY(graph_mark_within(judge->graph, &liveness->leaked, &liveness->garbage, &liveness->held,
			      judge->account, judge->progress));
	bitmap_minus(&liveness->leaked, &liveness->garbage);
	bitmap_minus(&liveness->held, &liveness->garbage);
	bitmap_minus(&liveness->leaked, &liveness->held);
	return NULL;
}

/* All that is lost is among the leaked so far. */
static struct error *tell_apart(const struct judge *judge)
{
	struct liveness *liveness = judge->liveness;

	TRY(bitmap_init_minus(&liveness->garbage, &liveness->leaked, NULL, judge->account));
	TRY(bitmap_init_minus(&liveness->all, &liveness->leaked, NULL, judge->account));
	bitmap_and(&liveness->garbage, judge->collectable);
	TRY(spare_kept(judge));
	return find_held(judge);
}

/* Lost objects, and what no object leads to: all that they lead to is leaked. */
static struct error *find_lost(const struct judge *judge, const struct bitmap *objects,
			       const struct counts *counts, struct bitmap *ret)
{
	const struct bitmap *leaked = &judge->liveness->leaked;
	_cleanup_(bitmap_deinit) struct bitmap of_objects = { 0 };
	_cleanup_(bitmap_deinit) struct bitmap from = { 0 };

	TRY(bitmap_init(&of_objects, leaked->count, judge->account));
	TRY(bitmap_init(ret, leaked->count, judge->account));
	TRY(graph_mark_within(judge->graph, leaked, objects, &of_objects, judge->account,
			      judge->progress));
	TRY(bitmap_init_minus(&from, leaked, &of_objects, judge->account));
	array_for_each(lost, &counts->lost)
		if (bitmap_get(leaked, lost->id))
			bitmap_set(&from, lost->id);
	return graph_mark_within(judge->graph, leaked, &from, ret, judge->account, judge->progress);
}

/* Add the set to another, which may have no words yet. */
static struct error *add_set(const struct judge *judge, struct bitmap *to, const struct bitmap *set)
{
	if (!to->words)
		TRY(bitmap_init(to, set->count, judge->account));
	bitmap_or(to, set);
	return NULL;
}

/* Move from the leaked what a collector of cycles frees, and what that leads to. */
static struct error *tell_counted(const struct judge *judge, const struct counts *counts)
{
	struct liveness *liveness = judge->liveness;
	_cleanup_(bitmap_deinit) struct bitmap objects = { 0 };
	_cleanup_(bitmap_deinit) struct bitmap kept = { 0 };
	_cleanup_(bitmap_deinit) struct bitmap rest = { 0 };

	TRY(bitmap_init_minus(&objects, &liveness->leaked, NULL, judge->account));
	bitmap_and(&objects, &counts->collected);
	TRY(find_lost(judge, &objects, counts, &kept));
	bitmap_minus(&objects, &kept);
	if (bitmap_weight(&objects) == 0)
		return NULL;
	TRY(bitmap_init_minus(&rest, &liveness->leaked, &kept, judge->account));
	bitmap_minus(&rest, &objects);
	TRY(add_set(judge, &liveness->all, &liveness->leaked));
	TRY(add_set(judge, &liveness->garbage, &objects));
	TRY(add_set(judge, &liveness->held, &rest));
	bitmap_and(&liveness->leaked, &kept);
	return NULL;
}

struct error *liveness_init(struct liveness *liveness, const struct graph *graph,
			    const struct allocation_index *index, const struct bitmap *anchored,
			    const struct counts *counts, struct memory_account *account,
			    struct progress *progress)
{
	_cleanup_(liveness_deinit) struct liveness found = { 0 };
	struct judge judge = {
		.graph = graph,
		.index = index,
		.collectable = allocation_having(index, TRAIT_COLLECTABLE),
		.account = account,
		.progress = progress,
		.liveness = &found,
	};

	TRY(bitmap_init_minus(&found.leaked, allocation_used(index), anchored, account));
	/* Objects that a runtime left at its end are garbage, even if reachable. */
	if (!judge.collectable && counts && counts->left.words)
		judge.collectable = &counts->left;
	if (judge.collectable)
		TRY(tell_apart(&judge));
	if (counts && counts->collected.words)
		TRY(tell_counted(&judge, counts));
	*liveness = take_struct(found);
	return NULL;
}
