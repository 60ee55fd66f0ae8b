/*
 * What the machine has.
 */
#ifndef CLI_PROMPT_MACHINE_H
#define CLI_PROMPT_MACHINE_H

#include <stddef.h>

/*
 * How many bytes of memory a process may use here at all: what the machine has, swap included, or
 * what its control group is allowed, if that is less. 0: it is not known.
 */
size_t machine_memory(void);

/* Say that memory is short for a library that cannot go on, and exit. */
void give_up(void) __attribute__((noreturn));

#endif
