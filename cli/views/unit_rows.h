/*
 * How full units of memory are, and what keeps those that are nearly empty.
 */
#ifndef CLI_VIEWS_UNIT_ROWS_H
#define CLI_VIEWS_UNIT_ROWS_H

#include "analyzer/account/units.h"
#include "analyzer/report/report.h"

/*
 * Of all arenas, or of the one; without what keeps them if that is not asked for. Nothing is
 * written if no allocator tells of units. At most limit rows of what keeps them, if it is not 0.
 */
struct error *unit_rows(struct analysis *analysis, const arena_number *only_arena, bool keepers,
			uint64_t limit, struct report *report);

/* What allocations of that name are, less their size, to be freed; NULL if memory is short. */
char *unit_rows_describe(struct kind_name name);

#endif
