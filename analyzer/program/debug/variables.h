/*
 * The variables of the process with their types: static ones, those of each thread, and locals and
 * parameters of functions that have not returned.
 */
#ifndef ANALYZER_PROGRAM_DEBUG_VARIABLES_H
#define ANALYZER_PROGRAM_DEBUG_VARIABLES_H

#include "analyzer/program/debug/type_table.h"

struct typed_variable {
	uint64_t address; /* of the variable; in a register: of its function's frame */
	uint64_t size;	  /* of what is left of it, at most */
	uint64_t value;	  /* of the register */
	type_number type;
	bool is_in_register;
};

/* Call visit for each until it returns false. */
void debug_visit_variables(struct debug *debug, const struct type_table *table,
			   bool (*visit)(void *data, const struct typed_variable *variable),
			   void *data);

#endif
