/*
 * What a fiber does: its stack, and the calls that it is in.
 */
#ifndef CLI_FIBER_DESCRIPTION_H
#define CLI_FIBER_DESCRIPTION_H

#include "analyzer/analysis.h"
#include "analyzer/report/report.h"

/* Write the fiber and at most limit calls, all of them if it is 0. */
void fiber_describe(struct analysis *analysis, size_t number, uint64_t limit,
		    struct report *report);

#endif
