/*
 * Fibers: threads of control that a program switches between by itself, each with a stack that it
 * mapped.
 *
 * Those of Crystal are known by shape; no symbols are needed. A class Fiber begins as below, in all
 * versions from 1.0 to 1.21; where the rest of it is differs between versions, and is found by what
 * most such objects agree on.
 *
 *	| type id | stack top | resumable | stack | ... | stack bottom |
 *
 *	stack          stack top               stack bottom
 *	| not in use   | saved registers | frames ... |
 *
 * A fiber that waits has all its registers saved at the stack top. One that has ended is no longer
 * on the list of all fibers, and its stack may be used by another: it is left out here.
 */
#ifndef ANALYZER_HEAP_FIBERS_H
#define ANALYZER_HEAP_FIBERS_H

#include "analyzer/heap/index.h"
#include "analyzer/program/debug/debug.h"

struct fiber {
	uint64_t object;     /* its address */
	uint64_t start, end; /* its stack */
	uint64_t live;	     /* [live, end) is in use */
	bool running;	     /* on a thread; then that knows the registers */
	uint32_t thread;     /* which, or NO_THREAD */
	const char *name;    /* or NULL; owned by the fibers (untrusted) */
};

struct fibers;

/* Fails only for want of memory. What is given is borrowed. */
struct error *fibers_create(const struct image *image, const struct program *program,
			    const struct allocation_index *index, struct memory_account *account,
			    struct fibers **ret);
void fibers_destroy(struct fibers *fibers);
DEFINE_CLEANUP(fibers_destroy, struct fibers *)

/* By the address of the stack. */
size_t fiber_count(const struct fibers *fibers);
const struct fiber *fiber_at(const struct fibers *fibers, size_t number);

/* The type id that all fibers have; 0: there are none. */
uint32_t fibers_type(const struct fibers *fibers);

/* The fiber whose stack holds address, or NULL. */
const struct fiber *fiber_find(const struct fibers *fibers, uint64_t address);

/* What a fiber that waits saved; false if that is not in the dump. */
bool fiber_registers(const struct image *image, const struct fiber *fiber,
		     struct saved_registers *ret);

/* A Crystal String's text, of which size bytes are there; NULL: it is none. */
const char *crystal_string(const struct image *image, uint64_t address, uint64_t *ret_size);

#endif
