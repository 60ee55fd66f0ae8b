/*
 * The tables of `fragmentation`, each with what its rows are made of.
 */
#ifndef CLI_VIEWS_FRAGMENTATION_ROWS_H
#define CLI_VIEWS_FRAGMENTATION_ROWS_H

#include "analyzer/account/pinned.h"
#include "analyzer/analysis/analysis.h"
#include "analyzer/report/report.h"

struct fragmentation {
	struct analysis *analysis;
	const struct fragments *fragments;
	const struct arena_fragments *total; /* of the arenas below */
	/* Those that are shown, most free memory first. */
	const arena_number *arenas;
	size_t arena_count;
	uint64_t limit; /* of rows in a table; 0: none */
};

/* What each arena holds, and what a picture of it looks like. */
void fragmentation_write_arenas(const struct fragmentation *fragmentation, struct report *report);
void fragmentation_write_maps(const struct fragmentation *fragmentation, struct report *report);

/* What would become of the free memory if it was asked back. */
void fragmentation_write_fates(const struct fragmentation *fragmentation, struct report *report);

/* Free blocks by powers of two; of each arena if so told. */
void fragmentation_write_sizes(const struct fragmentation *fragmentation, bool by_arena,
			       struct report *report);

/* What pins free memory, largest first. */
struct error *fragmentation_write_pinnings(const struct fragmentation *fragmentation,
					   const struct pinnings *pinnings, struct report *report);

/* The last allocation below the end of each heap; named if names are known. */
struct error *fragmentation_write_ends(const struct fragmentation *fragmentation, bool named,
				       struct report *report);

/* What fewer arenas might have saved. */
void fragmentation_write_estimate(const struct fragmentation *fragmentation, struct report *report);

#endif
