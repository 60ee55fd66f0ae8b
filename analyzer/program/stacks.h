/*
 * Finding the stacks of a dump, and which part of each is in use.
 *
 * Only what is certain to be a stack becomes one. The kernel's stack of the main thread holds the
 * bytes that AT_RANDOM points at. glibc keeps the stacks that it makes on lists, and its struct
 * pthread, at the upper end of a stack, tells where the stack begins. Anything else that a stack
 * pointer points into stays ordinary memory, all of it a root.
 *
 *	block         stack pointer       struct pthread     block + size
 *	| guard | dead | red zone | frames | TLS | pthread |
 *
 * The offsets within struct pthread are the architecture's (arch.h). Where the block is recorded
 * differs between versions; it is found by its contents.
 */
#ifndef ANALYZER_PROGRAM_STACKS_H
#define ANALYZER_PROGRAM_STACKS_H

#include "analyzer/program/modules.h"
#include "analyzer/program/program.h"

/* What is read of a struct pthread at address. */
struct descriptor {
	uint64_t address;
	int32_t tid;
	bool detached, exited, freed;
	uint64_t start, end; /* of its stack, guard included */
};

/* False if there is none, or it tells of no stack that it is in. */
bool descriptor_read(const struct image *image, uint64_t address, struct descriptor *ret);

/* The number of the thread, by its struct pthread; 0: it tells of none. */
uint32_t descriptor_tid(const struct image *image, uint64_t address);

struct stack_list {
	struct stack *stacks; /* by address */
	size_t count;
};

/* Fills in the threads' stack numbers, too. */
struct error *stack_list_init(struct stack_list *list, const struct image *image,
			      const struct module_list *modules, struct thread *threads,
			      size_t thread_count);
void stack_list_deinit(struct stack_list *list);

#endif
