/*
 * What has likely leaked: anchored, but only by words that hold nothing any more, as the spare
 * capacity of a vector or the rest of a string's buffer.
 *
 * The program can find these no more than what is certainly leaked, but a word with the
 * address is there. See patterns_is_tainted().
 */
#ifndef ANALYZER_GATE_LIKELY_H
#define ANALYZER_GATE_LIKELY_H

#include "analyzer/analysis/analysis.h"

/* *ret becomes the set, to be released. Builds what it needs. */
struct error *likely_leaked(struct analysis *analysis, struct bitmap *ret);

#endif
