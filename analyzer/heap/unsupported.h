/*
 * Heaps that are recognised but not read: what was allocated in them is not counted, and the user
 * has to know.
 */
#ifndef ANALYZER_HEAP_UNSUPPORTED_H
#define ANALYZER_HEAP_UNSUPPORTED_H

#include "analyzer/heap/allocator.h"

/*
 * Add a finding for each module with an allocator that is neither libc's nor understood; returns
 * whether there is any.
 */
bool report_unsupported(const struct heap_context *context,
			bool (*is_understood)(const void *data, const struct module *module),
			const void *data);

/* Add the finding that no heap was found. */
void report_no_heap(const struct heap_context *context);

#endif
