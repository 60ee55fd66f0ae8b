/*
 * Which thread-local variable of which thread stands at an address.
 *
 * A thread's control block, at its thread pointer, begins with that pointer itself and the address
 * of its table of blocks (dtv). The table has, for each module with thread-local variables, where
 * their block is: below the control block for modules there from the start, allocated for others.
 * The numbers of the modules stand in ld.so's link maps, behind the address and the sizes of the
 * initial image, which the program headers tell as well: by these they are found, whatever the
 * version of glibc.
 *
 *	blocks of modules | control block      table
 *	       1 |      0 | self | table --->  | size |  | 1: address | 2: ...
 */
#ifndef ANALYZER_PROGRAM_DEBUG_TLS_H
#define ANALYZER_PROGRAM_DEBUG_TLS_H

#include "analyzer/program/debug/debug.h"

/* The thread-local variables of a module. */
struct tls_module {
	const struct module *module;
	uint64_t bias;			 /* the module's */
	uint64_t image, file_size, size; /* of the initial values */
	uint64_t number;		 /* in the tables; 0: not known */
	uint64_t offset;		 /* of a block below the thread pointer, or 0 */
};

/* What is at an address. */
struct tls_place {
	uint32_t thread;
	const struct module *module; /* NULL: in nobody's variables */
	bool in_table;		     /* and not in the control block */
	uint64_t offset;	     /* in the module's block */
};

struct tls_range {
	uint64_t start, size;
	struct tls_place place; /* of its start */
};

struct tls {
	bool made;
	struct tls_module *modules;
	size_t module_count;
	struct tls_range *ranges; /* of all threads, by address */
	size_t range_count;
};

void tls_deinit(struct tls *tls);

bool tls_find(struct debug *debug, uint64_t address, struct tls_place *ret);

#endif
