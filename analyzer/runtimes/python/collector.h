/*
 * The state of CPython's collector of cycles, of 3.7 to 3.13.
 */
#pragma once

#include "analyzer/runtimes/runtime.h"

struct python_collector {
	bool is_enabled;
	bool is_collecting; /* the core is from the middle of a collection */
	uint64_t frozen;    /* objects that gc.freeze() set aside */
};

/* Visit the numbers of that state. */
struct error *python_collector_visit_structure(const struct runtime_context *context,
					       const struct structure_visitor *visitor);

/* False: it is not where it is searched for. */
bool python_collector_find(const struct runtime_context *context, struct python_collector *ret);
