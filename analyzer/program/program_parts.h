/*
 * Finding the parts of a program.
 */
#pragma once

#include "analyzer/program/program.h"

/* In this order, each once. */
struct error *program_find_modules(struct program *program);
void program_find_signatures(struct program *program, struct findings *findings);
void program_check_thread_pointers(struct program *program);
struct error *program_find_stacks(struct program *program);
struct error *program_find_thread_memory(struct program *program);

/* True if the thread is at the system call instruction, or right behind it. */
bool thread_is_at_call(const struct image *image, uint64_t instruction);

/* Fill in the thread's registers, and of one that never returns, live. The modules are known. */
void thread_find_use(const struct program *program, struct thread *thread);

/*
 * Report memory that a program cannot have been without, and that the dump lacks: what only it
 * refers to looks leaked.
 */
void program_report_missing(const struct program *program, struct findings *findings);

/* The fields read from a struct pthread at address. */
struct descriptor {
	uint64_t address;
	int32_t tid;
	bool detached, exited, freed;
	uint64_t start, end; /* of its stack, guard included */
	uint64_t block;	     /* the address of the words that tell the stack */
};

/* False if there is none, or its stack, in which it is, is not known. */
bool descriptor_read(const struct image *image, uint64_t address, struct descriptor *ret);

/* The number of the thread, by its struct pthread; 0: not known. */
uint32_t descriptor_tid(const struct image *image, uint64_t address);
