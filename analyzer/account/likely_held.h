/*
 * Leaked allocations whose address stands in disguise in memory that is in use: they are leaked as
 * far as anyone can tell for certain, but likely held. So is what they lead to.
 */
#pragma once

#include "analyzer/analysis/analysis.h"

/* The holder of the allocation itself; NULL: none is known (STAGE_DISGUISED). */
const struct disguised *likely_held_find(const struct analysis *analysis, allocation_id id);

/* See disguises_odds(); 0: it was not found by the value of one word. */
uint64_t likely_held_odds(const struct analysis *analysis, const struct disguised *disguised);

/* All that are likely held (STAGE_DISGUISED). */
const struct bitmap *likely_held(const struct analysis *analysis);
