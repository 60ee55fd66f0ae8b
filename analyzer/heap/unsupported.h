/*
 * Allocators that are recognised but unsupported: their allocations are not counted, and a finding
 * says so.
 */
#pragma once

#include "analyzer/heap/allocator.h"

/*
 * Add a finding for each module with an allocator that is neither libc's nor understood; returns
 * whether there is any.
 */
bool report_unsupported(const struct heap_context *context,
			bool (*is_understood)(const void *data, const struct module *module),
			const void *data);

/* True if the module is a Go program, even a stripped one. */
bool module_is_in_go(const struct image *image, const struct module *module);

/* Add the finding that no heap was found. */
void report_no_heap(const struct heap_context *context);

/* Add the finding that which allocators there are is not known. */
void report_no_modules(const struct heap_context *context);
