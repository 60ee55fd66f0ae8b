/*
 * Events of the machine: Ctrl-C, files that shrink, short memory.
 *
 * Files may become shorter while they are mapped: the core, while it is still written or already
 * removed, or a program that is replaced in place. To read what is gone raises SIGBUS. It then
 * reads as zeros, and later questions learn of it, so that answers are not relied on.
 */
#pragma once

#include "analyzer/base/progress.h"

#include <stdbool.h>
#include <stddef.h>

/* Exit statuses. */
enum {
	EXIT_FINE = 0,
	EXIT_FOUND = 1,
	EXIT_WRONG_USAGE = 2,
	EXIT_NOT_ANALYSED = 3,
	EXIT_INTERRUPTED = 130,
};

/*
 * From now on SIGINT sets progress->interrupted, and system calls that wait return EINTR. With
 * once, a second one kills the program as usual.
 */
void interrupt_catch(struct progress *progress, bool once);

/* From now on, a mapped file that shrinks does not end the program. */
void vanished_catch(void);

/* True if a mapped file shrank. */
bool vanished_any(void);

/* Forget files that shrank so far. */
void vanished_forget(void);

/*
 * How many bytes of memory a process may use here at all: what the machine has, swap included, or
 * what its control group is allowed, if that is less. 0: it is not known.
 */
size_t machine_memory(void);

/*
 * The folder for data shared by cores of one build: $XDG_CACHE_HOME/heapcore, or ~/.cache/heapcore.
 * NULL if there is none, or if $HEAPCORE_NO_CACHE is set.
 */
const char *cache_folder(void);

/* Say that memory is short for a library that cannot go on, and exit. */
void give_up(void) __attribute__((noreturn));
