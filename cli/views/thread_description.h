/*
 * What a thread does: its registers, and the calls that it is in.
 */
#ifndef CLI_VIEWS_THREAD_DESCRIPTION_H
#define CLI_VIEWS_THREAD_DESCRIPTION_H

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/report.h"

/* Of an endless recursion, these many calls show enough. */
enum { SHOWN_CALLS = 64 };

/* Write the calls, at most limit of them, or all that are known if it is 0. */
void thread_write_calls(struct analysis *analysis, uint32_t thread, uint64_t limit,
			struct report *report);

/* The same of calls that are no thread's, if thread is NO_THREAD. */
void calls_write(struct analysis *analysis, uint32_t thread, const struct backtrace *calls,
		 uint64_t limit, struct report *report);

/* Write the empty line behind them. */
void calls_end(struct report *report);

/* Write the thread, its registers and its calls. Needs STAGE_DEBUG. */
void thread_describe(struct analysis *analysis, uint32_t thread, struct report *report);

#endif
