/*
 * Where each thread's control block is.
 *
 * The register fs_base tells, but some that write cores put rubbish there. On x86-64 the block
 * begins with its own address, so what the register says can be checked, and the block be found
 * without: above the stack pointer in the thread's own stack, or, for the thread that the kernel
 * started, near an end of the memory that the loader or a static program allocated.
 */
#ifndef ANALYZER_PROGRAM_THREAD_POINTERS_H
#define ANALYZER_PROGRAM_THREAD_POINTERS_H

#include "analyzer/program/program.h"

/* Correct the threads' pointers, and say in them how sure each is. */
void thread_pointers_check(const struct image *image, struct thread *threads, size_t count);

#endif
