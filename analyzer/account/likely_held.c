#include "analyzer/account/likely_held.h"

uint64_t likely_held_odds(const struct analysis *analysis, const struct disguised *disguised)
{
	return disguised->disguise == DISGUISE_OFFSET
		       ? 0
		       : disguises_odds(
				 analysis_disguised(analysis),
				 allocation_start(analysis_index(analysis), disguised->target));
}

const struct disguised *likely_held_find(const struct analysis *analysis, allocation_id id)
{
	return disguises_of(analysis_disguised(analysis), id);
}

const struct bitmap *likely_held(const struct analysis *analysis)
{
	return &analysis_disguised(analysis)->reached;
}
