/*
 * Where each thread's control block is.
 *
 * The dump has the thread pointer, but some that write cores put rubbish there. If the block begins
 * with its own address, as on x86-64 (ELF Handling For Thread-Local Storage, 3.4.6), the pointer
 * can be checked, and the block be found without it: above the stack pointer in the thread's own
 * stack, or, for the thread that the kernel started, near an end of the memory that the loader or a
 * static program allocated.
 */
#ifndef ANALYZER_PROGRAM_THREAD_POINTERS_H
#define ANALYZER_PROGRAM_THREAD_POINTERS_H

#include "analyzer/program/program.h"

/* Correct the threads' pointers, and say in them how sure each is. */
void thread_pointers_check(const struct image *image, struct thread *threads, size_t count);

#endif
