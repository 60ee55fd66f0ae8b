/*
 * Calls of PHP that are running, and their variables.
 */
#pragma once

#include "analyzer/runtimes/php/space.h"

struct php_variable {
	const char *function; /* empty: the code of a file */
	const char *name;     /* without $ */
	uint64_t place;	      /* of the value */
};

/* Visit the variables of all calls, the innermost first. */
void php_visit_variables(const struct php *php,
			 void (*visit)(void *data, const struct php_variable *variable),
			 void *data);

/* The call that a Generator or Fiber waits in; 0: it is something else, or waits in none. */
uint64_t php_waiting_call(const struct php *php, allocation_id id);

/* Visit variables of the calls that a Generator or Fiber waits in; of any other object, nothing. */
void php_visit_waiting(const struct php *php, allocation_id id,
		       void (*visit)(void *data, const struct php_variable *variable), void *data);

/*
 * The name of the value's class, and the value in short; an empty text if that says it all. NULL:
 * memory is short.
 */
struct php_value;
const char *php_tell_value(struct php *php, struct view *view, const struct php_value *value,
			   char *ret, size_t size);
