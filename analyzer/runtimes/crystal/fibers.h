/*
 * Crystal's fibers, which are known by shape; no symbols are needed. A class Fiber begins as below,
 * in all versions from 1.0 to 1.21; where the rest of it is differs between versions, and is found
 * by what most such objects agree on.
 *
 *	| type id | stack top | resumable | stack | ... | stack bottom |
 *
 *	stack          stack top               stack bottom
 *	| not in use   | saved registers | frames ... |
 *
 * A fiber that waits has all its registers saved at the stack top. One that has ended is no longer
 * on the list of all fibers, and its stack may be used by another: it is left out here.
 */
#ifndef ANALYZER_RUNTIMES_CRYSTAL_FIBERS_H
#define ANALYZER_RUNTIMES_CRYSTAL_FIBERS_H

#include "analyzer/runtimes/runtime.h"

/* Add them to fibers. *ret_type is the type id that all have, 0 if there are none. */
struct error *crystal_find_fibers(const struct runtime_context *context, struct fibers *fibers,
				  uint32_t *ret_type);

/* The registers that a fiber which waits saved; false if they are not in the dump. */
bool crystal_fiber_registers(const struct image *image, const struct fiber *fiber,
			     struct frame_state *ret);

#endif
