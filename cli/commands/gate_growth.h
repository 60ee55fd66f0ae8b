/*
 * The gate's verdict on what grows from each of several cores to the next: `gate --growing OLD`,
 * and `heapcore soak`. What grows is handled like leaks, with fingerprints, rules and a baseline.
 */
#pragma once

#include "analyzer/diff/diff.h"
#include "analyzer/diff/growth.h"
#include "analyzer/gate/leak_kinds.h"
#include "analyzer/report/report.h"

struct gate_growth {
	struct diff *diff; /* owned; NULL: growth was not asked for */
	struct growths growths;
	struct leak_kinds kinds; /* one for each growth: its roots are allocations a core */
};

void gate_growth_deinit(struct gate_growth *growth);

/* Compare older cores, the oldest first, with the newest. ret is zeroed. */
struct error *gate_growth_find(struct analysis *newest, const char *const *paths, size_t count,
			       struct gate_growth *ret);

/* How many kinds of growth count. */
uint64_t gate_growth_count(const struct gate_growth *growth);

void gate_growth_write(const struct gate_growth *growth, const struct analysis *newest,
		       struct report *report);

void gate_growth_write_outcome(const struct gate_growth *growth, const char *outcome,
			       struct report *report);
