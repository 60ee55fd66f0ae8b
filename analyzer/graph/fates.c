#include "analyzer/graph/fates.h"

/* What the search works on; the fates are the result. */
struct judge {
	const struct graph *graph;
	const struct allocation_index *index;
	const struct bitmap *collectable;
	struct memory_account *account;
	struct progress *progress;
	struct fates *fates;
};

void fates_deinit(struct fates *fates)
{
	bitmap_deinit(&fates->leaked);
	bitmap_deinit(&fates->garbage);
	bitmap_deinit(&fates->held);
	bitmap_deinit(&fates->all);
}

/* The lost objects that the collector itself takes for roots. */
static struct error *find_keepers(const struct judge *judge, struct bitmap *ret)
{
	const struct bitmap *managed = allocation_having(judge->index, TRAIT_MANAGED);
	struct error *error = bitmap_init(ret, judge->fates->leaked.count, judge->account);

	if (error || !managed)
		return error;
	bitmap_copy(ret, managed);
	bitmap_and(ret, &judge->fates->leaked);
	bitmap_minus(ret, judge->collectable);
	return NULL;
}

/* Take out of the garbage what lost objects keep from being collected. */
static struct error *spare_kept(const struct judge *judge)
{
	_cleanup_(bitmap_deinit) struct bitmap keepers = { 0 };
	_cleanup_(bitmap_deinit) struct bitmap within = { 0 };
	_cleanup_(bitmap_deinit) struct bitmap kept = { 0 };
	struct fates *fates = judge->fates;
	struct error *error = find_keepers(judge, &keepers);

	if (error || bitmap_weight(&keepers) == 0)
		return error;
	error = bitmap_init(&within, keepers.count, judge->account);
	if (!error)
		error = bitmap_init(&kept, keepers.count, judge->account);
	if (error)
		return error;
	bitmap_copy(&within, &fates->garbage);
	bitmap_or(&within, &keepers);
	error = graph_mark_within(judge->graph, &within, &keepers, &kept, judge->account,
				  judge->progress);
	if (!error)
		bitmap_minus(&fates->garbage, &kept);
	return error;
}

/* Move from the leaked to the held what garbage leads to. */
static struct error *find_held(const struct judge *judge)
{
	struct fates *fates = judge->fates;
	struct error *error = bitmap_init(&fates->held, fates->leaked.count, judge->account);

	if (error)
		return error;
	error = graph_mark_within(judge->graph, &fates->leaked, &fates->garbage, &fates->held,
				  judge->account, judge->progress);
	bitmap_minus(&fates->leaked, &fates->garbage);
	bitmap_minus(&fates->held, &fates->garbage);
	bitmap_minus(&fates->leaked, &fates->held);
	return error;
}

/* All that is lost is among the leaked so far. */
static struct error *tell_apart(const struct judge *judge)
{
	struct fates *fates = judge->fates;
	size_t count = fates->leaked.count;
	struct error *error = bitmap_init(&fates->garbage, count, judge->account);

	if (!error)
		error = bitmap_init(&fates->all, count, judge->account);
	if (error)
		return error;
	bitmap_copy(&fates->all, &fates->leaked);
	bitmap_copy(&fates->garbage, &fates->leaked);
	bitmap_and(&fates->garbage, judge->collectable);
	error = spare_kept(judge);
	return error ? error : find_held(judge);
}

struct error *fates_init(struct fates *fates, const struct graph *graph,
			 const struct allocation_index *index, const struct bitmap *anchored,
			 struct memory_account *account, struct progress *progress)
{
	struct fates found = { 0 };
	struct judge judge = {
		.graph = graph,
		.index = index,
		.collectable = allocation_having(index, TRAIT_COLLECTABLE),
		.account = account,
		.progress = progress,
		.fates = &found,
	};
	struct error *error = bitmap_init(&found.leaked, allocation_count(index), account);

	if (error)
		return error;
	bitmap_copy(&found.leaked, allocation_used(index));
	bitmap_minus(&found.leaked, anchored);
	if (judge.collectable)
		error = tell_apart(&judge);
	if (error) {
		fates_deinit(&found);
		return error;
	}
	*fates = found;
	return NULL;
}
