/*
 * Likely leaks: allocations that are anchored, but only by stale words, as in the spare capacity of
 * a vector or behind the end of a string (patterns_is_tainted()).
 *
 * The program can no longer find them, but a word with their address is still there.
 */
#ifndef ANALYZER_GATE_LIKELY_LEAKS_H
#define ANALYZER_GATE_LIKELY_LEAKS_H

#include "analyzer/analysis/analysis.h"

/* *ret, which is zeroed, becomes the set. Builds what it needs. */
struct error *likely_leaks_find(struct analysis *analysis, struct bitmap *ret);

#endif
