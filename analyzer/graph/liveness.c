#include "analyzer/graph/liveness.h"

/* What the search works on; the liveness is the result. */
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

struct error *liveness_init(struct liveness *liveness, const struct graph *graph,
			    const struct allocation_index *index, const struct bitmap *anchored,
			    struct memory_account *account, struct progress *progress)
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
	if (judge.collectable)
		TRY(tell_apart(&judge));
	*liveness = take_struct(found);
	return NULL;
}
