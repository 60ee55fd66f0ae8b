/*
 * What a fiber does: its stack, and the calls that it is in.
 */
#ifndef CLI_VIEWS_FIBER_DESCRIPTION_H
#define CLI_VIEWS_FIBER_DESCRIPTION_H

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/report.h"

/* Write the fiber and at most limit calls, all of them if it is 0. */
void fiber_describe(struct analysis *analysis, size_t number, uint64_t limit,
		    struct report *report);

/*
 * Where on a waiting fiber's stack the address is, as "variable session of serve(), frame 3 of
 * fiber 0x7f0c1a2b3c40 'main'"; NULL if on none. Needs STAGE_FIBERS and STAGE_DEBUG.
 */
const char *fiber_place(const struct analysis *analysis, uint64_t address);

#endif
