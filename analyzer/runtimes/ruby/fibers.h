/*
 * Fibers of MRI that have begun and not ended, and their stacks (cont.c).
 *
 * rb_fiber_t, the data of a Fiber, has the context of its calls (frames.h) and its stack, which is
 * a part of a larger mapping. Its top holds the values and frames of Ruby:
 *
 *	... | stack pointer | ... | base | current | size | available | ...
 *
 *	base         stack pointer              current = base + available        base + size
 *	| free           | native calls               | frames of Ruby and values |
 *
 * The first fiber of a thread is on the thread's own stack, and is one only once another was
 * resumed.
 */
#pragma once

#include "analyzer/runtimes/runtime.h"

/* The slots of struct runtime. */
struct error *ruby_find_fibers(struct object_space *space, struct fibers *fibers);
bool ruby_fiber_registers(const struct image *image, const struct fiber *fiber,
			  struct frame_state *ret);
