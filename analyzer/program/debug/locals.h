/*
 * Which variable of which call stands at an address of a stack.
 */
#ifndef ANALYZER_PROGRAM_DEBUG_LOCALS_H
#define ANALYZER_PROGRAM_DEBUG_LOCALS_H

#include "analyzer/program/debug/frames.h"

/* A variable found, the way into it included. */
struct local {
	const char *path; /* as "session.user" */
	bool parameter;
	size_t inlining; /* how many of the functions inlined there are within
			  */
};

/* The variable at address in the function of the frame, or in one inlined into it. */
bool local_find(struct debug *debug, const struct frame *frame, const struct frame_state *state,
		uint64_t address, struct local *ret);

#endif
