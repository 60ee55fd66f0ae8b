/*
 * The callers that allocated each block, as the recorder noted it (analyzer/capture/recorder.h) in
 * the memory of the program that ran with it, and so in its core.
 */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/heap/noting.h"
#include "analyzer/image/view.h"

struct recorded {
	struct analysis *analysis; /* borrowed; NULL: there is nothing */
	struct view view;
	uint64_t folder, stacks;     /* addresses */
	uint64_t lost;		     /* blocks that it had no room for */
	const struct noting *noting; /* instead of the recorder; or NULL */
	void *owner;		     /* of the notes */
};

/* True if the recorder is among the modules of the program. */
bool recorded_is_there(const struct analysis *analysis);

/* Find the recorder's data; ret is all zeros. Fails, and says why, if there is none. */
struct error *recorded_open(struct analysis *analysis, struct recorded *ret);

/* Find the notes of the program's own allocator instead. *ret stays as it is if there are none. */
struct error *recorded_open_notes(struct analysis *analysis, struct recorded *ret);

/* The stack that allocated the block, or 0. */
uint64_t recorded_stack(struct recorded *recorded, uint64_t address);

/*
 * How many calls there are up to main(), or to where a thread begins: what libc called before tells
 * nothing.
 */
size_t recorded_count_own(const struct backtrace *calls);

/* The calls of the stack, the innermost first, with what is inlined; to be freed. */
struct error *recorded_calls(const struct recorded *recorded, uint64_t stack,
			     struct backtrace *ret);
