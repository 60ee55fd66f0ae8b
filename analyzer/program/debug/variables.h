/*
 * The variables of the process with their types: static ones, those of each thread, and locals and
 * parameters of functions that have not returned.
 */
#pragma once

#include "analyzer/program/debug/type_table.h"

struct typed_variable {
	uint64_t address; /* of the variable; in a register: of its function's frame */
	uint64_t size;	  /* of what is left of it, at most */
	uint64_t value;	  /* of the register */
	type_number type;
	bool is_in_register;
};

/*
 * The variable's address; in the main thread, if it is thread-local. False: the thread has no copy
 * of it yet.
 */
bool debug_variable_address(struct debug *debug, const struct type_variable *variable,
			    uint64_t *ret);

/*
 * True if a module may have a variable of that name, without its scope, judged by symbols alone,
 * which are quicker to read than types.
 */
bool debug_may_have_variable(struct debug *debug, const char *name);

/*
 * The variable of a module that has a symbol of that name, whatever debug information there is.
 * Calls visit for each until it returns false.
 */
void debug_visit_data_symbols(struct debug *debug, const char *name,
			      bool (*visit)(void *data, const struct symbol *symbol), void *data);

/* Call visit for each until it returns false. */
void debug_visit_variables(struct debug *debug, const struct type_table *table,
			   bool (*visit)(void *data, const struct typed_variable *variable),
			   void *data);
