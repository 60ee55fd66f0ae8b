/*
 * Threads inside of a system call that the C library made: what of their registers and their stack
 * the program still uses.
 *
 * No function keeps vector registers over a call, and no code of glibc has any in use over a system
 * call of its own (all of 2.31, 2.36, 2.41 and 2.43 was looked at): while a thread waits in one,
 * they hold nothing.
 *
 * A thread that ends, or ends the process, never returns. Up to exit() the frames on its stack are
 * glibc's own, full of what was left there before. What counts is what its caller has: the stack
 * above, and the registers that calls preserve. Once main() has returned, it has no frame any more.
 *
 *	| _exit | handlers | exit | caller ... main | its caller |
 *	| dead                    | live            | live until main returns |
 *
 * Frames of the program inside of exit(), as those of a handler, are not left out, nor is what is
 * above them.
 */
#ifndef ANALYZER_PROGRAM_SYSTEM_CALLS_H
#define ANALYZER_PROGRAM_SYSTEM_CALLS_H

#include "analyzer/program/modules.h"

/* Fills in the thread's registers, and of one that never returns, live. */
void thread_find_use(const struct image *image, const struct module_list *modules,
		     struct thread *thread);

#endif
