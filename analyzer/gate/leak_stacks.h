/*
 * Finds the callers that allocated leaked memory, as the recorder noted
 * (analyzer/capture/recorder.h) in the core of a program that ran with it.
 */
#pragma once

#include "analyzer/gate/leak_kinds.h"
#include "analyzer/gate/recorded.h"

/* Leak roots of one kind that were allocated by the same calls. */
struct leak_stack {
	uint64_t fingerprint;
	uint64_t roots;
	uint64_t stack; /* for recorded_calls(); 0: none was recorded, the last of its leak */
};

struct leak_stacks {
	struct analysis *analysis;     /* of the other core; owned; NULL: there are none */
	ARRAY(struct leak_stack) list; /* by fingerprint; of one, the most roots first */
	struct recorded recorded;
	bool is_other; /* the core is of another run */
};

/*
 * Find the stacks of leaked allocations in the core at path, which is opened beside the analysis;
 * ret is all zeros. Fails if the core has no recorder.
 */
struct error *leak_stacks_find(struct analysis *analysis, const char *path,
			       struct leak_stacks *ret);
/* Find them in the analysis itself, if the program's own allocator noted them. */
struct error *leak_stacks_find_noted(struct analysis *analysis, struct leak_stacks *ret);
void leak_stacks_deinit(struct leak_stacks *stacks);
DEFINE_DEINIT(leak_stacks_deinit, struct leak_stacks)

/* The first of that fingerprint, and how many there are. */
const struct leak_stack *leak_stacks_of(const struct leak_stacks *stacks, uint64_t fingerprint,
					size_t *ret_count);

/* True if the call is of the program's own code: neither a library's nor in its sources. */
bool leak_call_is_own(const struct frame *frame);

/* The innermost of the program's own calls; NULL: there is none. */
const struct frame *leak_stack_caller(const struct backtrace *calls);

/*
 * The innermost of the calls, from the first that is no library's: "conn_new (conn.c:5) < main
 * (main.c:9)"; to be freed; NULL if memory is short.
 */
char *leak_calls_text(const struct backtrace *calls, size_t most);
