/* Writes how full units of memory are, and what keeps those that are nearly empty. */
#pragma once

#include "analyzer/account/units.h"
#include "analyzer/report/report.h"

/*
 * Write the units of all arenas, or of one; what keeps them only if asked for, at most limit rows
 * (0: all). Writes nothing if no allocator reports units.
 */
struct error *unit_rows(struct analysis *analysis, const arena_number *only_arena, bool keepers,
			uint64_t limit, struct report *report);

/* Describe allocations of that name, without their size; to be freed; NULL if memory is short. */
char *unit_rows_describe(struct kind_name name);
