/*
 * What a gate makes of each leak: new, known, more than is known, suppressed.
 */
#ifndef ANALYZER_GATE_JUDGE_H
#define ANALYZER_GATE_JUDGE_H

#include "analyzer/gate/baseline.h"
#include "analyzer/gate/suppressions.h"

/* Fill in the states, and which entries and rules matched. */
void judge_suppress(struct leak_kinds *kinds, struct suppressions *suppressions);
void judge_compare(struct leak_kinds *kinds, struct baseline *baseline);

/* "new", "known", "more" or "suppressed". */
const char *leak_state_name(enum leak_state state);

/* Whether a gate is to count it. */
bool leak_counts(const struct leak_kind *kind);

/*
 * How much of a kind counts: all of what is new, and of what there is more of than is known, the
 * share of the roots that are too many.
 */
struct leak_total leak_counted(const struct leak_kind *kind);

/* What counts of all, shared allocations included. */
struct error *judge_total(struct analysis *analysis, const struct leak_kinds *kinds,
			  struct leak_total *ret);

#endif
