/* Registers, stacks and calls of threads and fibers. */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/report.h"

/* Show at most this many calls, which is enough of an endless recursion. */
enum { SHOWN_CALLS = 64 };

/* Write the calls, at most limit of them, or all that are known if it is 0. */
void thread_write_calls(struct analysis *analysis, uint32_t thread, uint64_t limit,
			struct report *report);

/*
 * Write the calls that the thread is in in languages whose runtimes know them, at most limit, with
 * their variables or without. Needs STAGE_OBJECTS.
 */
struct error *thread_write_frames(struct analysis *analysis, uint32_t thread, uint64_t limit,
				  bool with_locals, struct report *report);

/* Write the empty line behind them. */
void calls_end(struct report *report);

/* Write the thread, its registers and its calls. Needs STAGE_DEBUG. */
void thread_describe(struct analysis *analysis, uint32_t thread, struct report *report);

/* Say that there is none. */
void fibers_write_none(struct analysis *analysis, struct report *report);

/* Write the frames of a fiber. */
struct error *fiber_write_frames(struct analysis *analysis, size_t number, uint64_t limit,
				 bool with_locals, struct report *report);

/*
 * Write the tasks of event loops, what each waits for and retains, and at most limit calls of each.
 * Needs STAGE_OBJECTS and STAGE_RETAINED.
 */
struct error *tasks_write(struct analysis *analysis, uint64_t limit, bool with_locals,
			  struct report *report);

/* Write the fiber and at most limit calls, all of them if it is 0. calls_end() goes last. */
void fiber_describe(struct analysis *analysis, size_t number, uint64_t limit,
		    struct report *report);

/*
 * The place of an address on the stack of a waiting fiber, as "variable session of serve(), frame 3
 * of fiber 0x7f0c1a2b3c40 'main'"; NULL if it is on none. Needs STAGE_FIBERS and STAGE_DEBUG.
 */
const char *fiber_place(const struct analysis *analysis, uint64_t address);
