/*
 * Finding the variable at an address of static memory, or at an offset in the thread-local
 * variables of a module.
 *
 * DWARF has no index for that. But where a variable is stands in .debug_info as a few bytes, of
 * known form: their number, DW_OP_addr, the address. One pass over the section for that form finds
 * all candidates, and keeps 8 bytes of each; only the entry around the right one is then read.
 * Where compilers write DW_OP_addrx, the number of the address in .debug_addr, that is looked for
 * in the one unit to which the number belongs.
 */
#ifndef ANALYZER_PROGRAM_DEBUG_STATICS_H
#define ANALYZER_PROGRAM_DEBUG_STATICS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct static_hit {
	uint32_t address; /* less the first one of the index */
	uint32_t offset;  /* into .debug_info */
};

struct static_index {
	bool made;
	uint64_t start, end;	 /* of data, as the file has it */
	struct static_hit *hits; /* by address */
	size_t count;
};

struct debug_module;

void static_index_deinit(struct static_index *index);

/* The variable that begins at address (less the bias) in the module. */
bool static_variable_find(struct debug_module *module, uint64_t address, Dwarf_Die *ret);

/* The thread-local variable that begins at offset in those of the module. */
bool thread_local_variable_find(struct debug_module *module, uint64_t offset, Dwarf_Die *ret);

#endif
