/*
 * The allocations that retain most, each with the way to it, what refers to it and what is in it:
 * for a page that must do without the core.
 */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/report.h"

/*
 * Write them, as long as the report has fewer than most_bytes; those of the bitmap first, which may
 * be without words. Builds what it needs.
 */
struct error *largest_rows(struct analysis *analysis, const struct bitmap *first,
			   uint64_t most_bytes, struct report *report);
