/*
 * The members of a set one by one: by address, or the largest first; those of a chain or an
 * extension in the order in which they were found.
 *
 * To sort, the sizes that occur are counted first: there are few, as a heap of many sizes must hold
 * an allocation of each. Their counts say where in the order the allocations of a size stand, so a
 * second pass puts each in its place, and nothing is compared. With a limit, only what is among the
 * first is kept: that takes 4 bytes for each member that is shown. What members retain may be as
 * many different numbers: to sort by it takes 16 bytes each.
 */
#ifndef ANALYZER_QUERY_ORDER_H
#define ANALYZER_QUERY_ORDER_H

#include "analyzer/query/query.h"

struct member_visitor {
	/* Returns false to end the visit. */
	bool (*member)(void *data, allocation_id id);
	/* NULL: comments are left out. */
	void (*comment)(void *data, const struct member_comment *comment);
	void *data;
};

/*
 * Visit the members, as many as the query's limit allows, and the comments in their places among
 * them: in front of all where the order is not that in which the members were found. What a
 * limit leaves out keeps its comments to itself, unless they are warnings. Ends with
 * ERROR_INTERRUPTED when asked to.
 */
struct error *query_visit(struct analysis *analysis, const struct set_query *query,
			  const struct members *members, const struct member_visitor *visitor);

/* Only the comments, all of them. */
void query_visit_comments(const struct members *members, const struct member_visitor *visitor);

#endif
