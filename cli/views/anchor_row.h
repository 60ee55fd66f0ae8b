/*
 * A reference from outside of the heaps, and what it is called there.
 */
#ifndef CLI_VIEWS_ANCHOR_ROW_H
#define CLI_VIEWS_ANCHOR_ROW_H

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/report.h"

/* "Static address 0x55d0c0de4060 in cache.entries (three) references ..." */
void anchor_write(const struct analysis *analysis, const struct anchor *anchor,
		  struct report *report);

/* "The allocation at ... is likely held by a tagged pointer at ..." */
void anchor_write_likely(const struct analysis *analysis, const struct disguised *disguised,
			 struct report *report);

#endif
