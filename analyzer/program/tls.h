/*
 * Finds the thread-local variables of modules, as the C library stores them.
 *
 * A thread's control block, at its thread pointer, has the address of its table of blocks (dtv),
 * behind that pointer itself on some machines. The table has, for each module with thread-local
 * variables, where their block is: next to the control block for modules there from the start,
 * below it or, on other machines, above; allocated for others.
 * The numbers of the modules stand in ld.so's link maps, behind the address and the sizes of the
 * initial image, which the program headers tell as well: by these they are found, whatever the
 * version of glibc.
 *
 *	blocks of modules | control block      table
 *	       1 |      0 | self | table --->  | size |  | 1: address | 2: ...
 */
#pragma once

#include "analyzer/program/program.h"

/* The thread-local variables of a module. */
struct tls_module {
	const struct module *module;
	uint64_t bias;			 /* the module's */
	uint64_t image, file_size, size; /* of the initial values */
	uint64_t number;		 /* in the tables; 0: not known */
	uint64_t offset;		 /* of a block below the thread pointer, or 0 */
	uint64_t row;			 /* the address of what link maps say of it, or 0 */
};

/* True if the thread has a control block. In Go without C, none has. */
bool thread_has_control_block(const struct program *program, const struct thread *thread);

/* The thread's struct pthread and its control block, which may be one. */
struct memory_range thread_control_block(const struct program *program,
					 const struct thread *thread);

/* The thread's table; false if there is none. */
bool thread_table(const struct program *program, const struct thread *thread,
		  struct memory_range *ret);

/* The address of the thread's copy of the module's variables; 0: none yet. */
uint64_t thread_variables(const struct program *program, const struct thread *thread,
			  const struct tls_module *module);

/* The thread's control block, and the blocks of modules next to it. */
struct memory_range thread_static_memory(const struct program *program,
					 const struct thread *thread);
