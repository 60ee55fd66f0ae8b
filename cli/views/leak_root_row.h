/*
 * Rows of a leak root by itself: what its loss leaked, and what freed memory held it.
 */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/report.h"

void leak_root_row(struct report *report, const struct analysis *analysis,
		   const struct leak_root *root);

/* The row of a freed block that still has its address, if there is one. */
struct error *freed_holder_row(struct report *report, struct analysis *analysis, allocation_id id);
