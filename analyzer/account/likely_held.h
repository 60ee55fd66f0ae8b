/*
 * Leaked allocations whose address stands in disguise in memory that is in use: they are leaked as
 * far as anyone can tell for certain, but likely held.
 */
#ifndef ANALYZER_ACCOUNT_LIKELY_HELD_H
#define ANALYZER_ACCOUNT_LIKELY_HELD_H

#include "analyzer/analysis/analysis.h"

/* What holds the allocation itself; NULL: nothing, as far as that is known (STAGE_DISGUISED). */
const struct disguised *likely_held_find(const struct analysis *analysis, allocation_id id);

/*
 * How sure that is: were all words random, one would look so in one of so many cores. What is
 * likelier than one in LEAST_ODDS is not told.
 */
uint64_t likely_held_odds(const struct analysis *analysis, allocation_id id);

enum { LEAST_ODDS = 1000 };

#endif
