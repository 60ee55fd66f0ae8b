/*
 * The members of a set one by one: by address, or the largest first; those of
 * a chain or an extension in the order in which they were come upon.
 *
 * To sort, the sizes that occur are counted first: there are few, as a heap of
 * many sizes must hold an allocation of each. Their counts say where in the
 * order the allocations of a size stand, so a second pass puts each in its
 * place, and nothing is compared. With a limit, only what is among the first
 * is kept: that takes 4 bytes for each member that is shown.
 */
#ifndef ANALYZER_QUERY_ORDER_H
#define ANALYZER_QUERY_ORDER_H

#include "analyzer/query/query.h"

/*
 * Call visit for the members, as many as the query's limit allows, until it
 * returns false. Ends with ERROR_INTERRUPTED when asked to.
 */
struct error *query_visit(struct analysis *analysis,
			  const struct set_query *query,
			  const struct members *members,
			  bool (*visit)(void *data, allocation_id id),
			  void *data);

#endif
