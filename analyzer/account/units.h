/*
 * Measures how full memory is that allocators use or give back only as a whole: pools and arenas of
 * pools, pages of slots, chunks (struct heap_unit); and what keeps nearly empty units. If only a
 * runtime counts a page's objects, what keeps it is unknown.
 *
 * A unit is nearly empty if something in it is in use, and nine tenths of it are free. What is in
 * use in one that could go back to the system keeps its free bytes; they are divided evenly among
 * these allocations, as those of pages are (pinned.h).
 */
#pragma once

#include "analyzer/account/pinned.h"

/* The units of one kind, with blocks of one size. */
struct unit_group {
	const char *memory; /* an allocator's name, or what a runtime calls its pages */
	const struct unit_kind *kind;
	uint64_t block; /* 0: of several sizes */
	uint64_t count;
	uint64_t empty;			/* of these */
	struct set_total used, free;	/* allocations */
	uint64_t sparse;		/* units that are nearly empty */
	struct set_total kept_by, kept; /* used and free ones in these */
};

struct units {
	HASH_TABLE(struct unit_group) groups; /* by memory and kind, most free memory first */
	struct pinnings keepers; /* of those that are nearly empty, and could be given back */
};

/*
 * Look at the units of all arenas, or of the one (STAGE_HEAP); without keepers if that is not
 * asked for. ret: zero at first.
 */
struct error *units_find(struct analysis *analysis, const arena_number *only_arena, bool keepers,
			 struct units *ret);
void units_deinit(struct units *units);
DEFINE_DEINIT(units_deinit, struct units)
