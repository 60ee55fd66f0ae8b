/*
 * Whose heap allocations are in, where a process has those of several allocators.
 */
#ifndef CLI_VIEWS_HEAP_ROWS_H
#define CLI_VIEWS_HEAP_ROWS_H

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/report.h"

/*
 * "Of these, 25 allocations taking 0x668 (1,640) bytes are in the heap of NAME.", for each
 * allocator; nothing if there is only one.
 */
void heap_rows_write(struct report *report, const struct analysis *analysis,
		     const struct bitmap *members);

#endif
