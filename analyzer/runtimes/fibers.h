/*
 * Fibers: threads of control that a program switches between by itself, each with a stack that it
 * mapped. Runtimes find them; see runtime.h.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/heap/index.h"
#include "analyzer/program/debug/debug.h"

struct runtime;

struct fiber {
	const struct runtime *runtime; /* whose it is */
	uint64_t object;	       /* its address */
	uint64_t start, end;	       /* its stack */
	uint64_t live;		       /* [live, end) is in use */
	bool running;		       /* on a thread; then that knows the registers */
	uint32_t thread;	       /* which, or NO_THREAD */
	const char *name;	       /* or NULL; owned by the fibers (untrusted) */
};

struct fibers {
	ARRAY(struct fiber); /* by stack, once sorted */
};

/* Fails only if memory is short; takes over the name in any case. */
struct error *fibers_add(struct fibers *fibers, struct fiber fiber);

/* Sort all by stack, and drop those whose stacks overlap others'. */
void fibers_sort(struct fibers *fibers);
void fibers_deinit(struct fibers *fibers);
DEFINE_DEINIT(fibers_deinit, struct fibers)

/* The fiber whose stack holds address, or NULL. */
const struct fiber *fiber_find(const struct fibers *fibers, uint64_t address);

/* The registers that a waiting fiber saved; false if they are not in the dump. */
bool fiber_registers(const struct image *image, const struct fiber *fiber, struct frame_state *ret);
