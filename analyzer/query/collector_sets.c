#include "analyzer/query/collector_sets.h"

/* The members, if there are any at all. */
static struct error *take_members(struct bitmap *ret, const struct bitmap *members)
{
	if (members)
		bitmap_copy(ret, members);
	return NULL;
}

static const struct bitmap *having(const struct analysis *analysis, enum block_trait trait)
{
	return allocation_having(analysis_index(analysis), trait);
}

struct error *set_select_collectable(struct analysis *analysis,
				     const struct set_arguments *arguments, struct bitmap *ret)
{
	take_members(ret, having(analysis, TRAIT_COLLECTABLE));
	bitmap_and(ret, allocation_used(analysis_index(analysis)));
	return NULL;
}

struct error *set_select_uncollectable(struct analysis *analysis,
				       const struct set_arguments *arguments, struct bitmap *ret)
{
	const struct bitmap *collectable = having(analysis, TRAIT_COLLECTABLE);

	take_members(ret, having(analysis, TRAIT_MANAGED));
	bitmap_and(ret, allocation_used(analysis_index(analysis)));
	if (collectable)
		bitmap_minus(ret, collectable);
	return NULL;
}

struct error *set_select_atrisk(struct analysis *analysis, const struct set_arguments *arguments,
				struct bitmap *ret)
{
	take_members(ret, analysis_at_risk(analysis));
	if (bitmap_weight(ret) > 0)
		analysis_doubt_risk(analysis);
	return NULL;
}
