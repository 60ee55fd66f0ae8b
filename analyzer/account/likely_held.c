#include "analyzer/account/likely_held.h"

uint64_t likely_held_odds(const struct analysis *analysis, allocation_id id)
{
	/* Each word is decoded in so many ways, packed ones at each byte. */
	enum { WAYS = 12 };
	const struct allocation_index *index = analysis_index(analysis);
	uint64_t tries = WAYS * (analysis_disguised(analysis)->words + 1);
	uint64_t values = 1;

	/* Numbers have as many bits as the address, or more. */
	for (uint64_t rest = allocation_start(index, id); rest; rest >>= 1)
		values <<= 1;
	return values / tries;
}

const struct disguised *likely_held_find(const struct analysis *analysis, allocation_id id)
{
	const struct disguises *disguised = analysis_disguised(analysis);

	if (disguised->list.count == 0 || likely_held_odds(analysis, id) < LEAST_ODDS)
		return NULL;
	return disguises_of(disguised, id);
}
