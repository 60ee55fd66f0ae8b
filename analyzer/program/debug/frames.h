/*
 * Backtraces, from call frame information by libdwfl.
 */
#ifndef ANALYZER_PROGRAM_DEBUG_FRAMES_H
#define ANALYZER_PROGRAM_DEBUG_FRAMES_H

#include "analyzer/program/debug/units.h"

struct unwinder;

void unwinder_destroy(struct unwinder *unwinder);

/* The state of each frame of the thread's backtrace, or NULL. */
const struct frame_state *debug_frame_states(struct debug *debug, uint32_t thread);

/* The same of the calls that debug_backtrace_of() gives. */
const struct frame_state *debug_saved_frame_states(struct debug *debug,
						   const struct frame_state *saved);

#endif
