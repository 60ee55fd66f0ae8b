/*
 * A reference from outside of the heaps, and what it is called there.
 */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/report.h"

/* "Static address 0x55d0c0de4060 in cache.entries (three) references ..." */
void anchor_write(const struct analysis *analysis, const struct anchor *anchor,
		  struct report *report);

/*
 * Write it as the first step of a path: "  1. cache.entries (three), static address
 * 0x55d0c0de4060".
 */
void anchor_write_step(const struct analysis *analysis, const struct anchor *anchor,
		       const char *number, struct report *report);

/*
 * The certainty that the program uses it, best first: static data and what the kernel or an
 * interpreter holds, a variable of a call, a register, a word of a stack that is in no known
 * variable, which may be stale.
 */
unsigned int anchor_rank(const struct analysis *analysis, const struct anchor *anchor);

/* "The allocation at ... is likely held by a tagged pointer at ..." */
void anchor_write_likely(const struct analysis *analysis, const struct disguised *disguised,
			 struct report *report);
