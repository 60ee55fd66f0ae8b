/*
 * Taking a census: count each used allocation by one aspect of it, or by what holds it.
 */
#ifndef ANALYZER_DIFF_COUNT_H
#define ANALYZER_DIFF_COUNT_H

#include "analyzer/diff/census.h"

/* Called with each used allocation by address, and the number of its key, plus 1; 0: none. */
typedef struct error *(*census_visitor)(void *data, allocation_id id, struct memory_range range,
					uint32_t number);

/* Build what a census needs. */
struct error *census_need(struct analysis *analysis, enum aspect aspect);

/* Count, and visit unless visit is NULL. ret is to be deinitialised in any case. */
struct error *census_take(struct analysis *analysis, enum aspect aspect, census_visitor visit,
			  void *data, struct census *ret);

#endif
