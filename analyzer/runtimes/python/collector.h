/*
 * The state of CPython's collector of cycles, of 3.11.
 */
#ifndef ANALYZER_RUNTIMES_PYTHON_COLLECTOR_H
#define ANALYZER_RUNTIMES_PYTHON_COLLECTOR_H

#include "analyzer/image/view.h"
#include "analyzer/program/program.h"

struct python_collector {
	bool is_enabled;
	bool is_collecting; /* the core is from the middle of a collection */
	uint64_t frozen;    /* objects that gc.freeze() set aside */
};

/* False: it is not where it is searched for. */
bool python_collector_find(const struct image *image, const struct program *program,
			   struct python_collector *ret);

#endif
