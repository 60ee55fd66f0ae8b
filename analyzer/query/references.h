/*
 * Where in memory something stands: references to an address, or any value.
 */
#ifndef ANALYZER_QUERY_REFERENCES_H
#define ANALYZER_QUERY_REFERENCES_H

#include "analyzer/query/ranges.h"

/* Hits of a search for anything; they are not collected by arguments. */
extern const struct range_kind range_kind_matches;

/*
 * Search the memory; skipped is a mask of enum skipped_place. ret, which is empty, gets the hits.
 * Needs STAGE_HEAP.
 */
struct error *references_find(struct analysis *analysis, struct search search, unsigned int skipped,
			      struct ranges *ret);

#endif
