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
#pragma once

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

struct entry {
	uint64_t value;
	allocation_id id;
};

/*
 * The allocations with the largest values among those that are offered. They are a heap with the
 * least on top, which gives way to any larger one: 16 bytes for each that is kept.
 */
struct largest {
	ARRAY(struct entry) entries;
	size_t limit;
};

/* How many are kept at most; 0: all. */
void largest_init(struct largest *largest, size_t limit, struct memory_account *account);
void largest_deinit(struct largest *largest);
DEFINE_DEINIT(largest_deinit, struct largest)

struct error *largest_offer(struct largest *largest, allocation_id id, uint64_t value);

/* Put those kept in order, for largest_at(); nothing is offered afterwards. */
void largest_sort(struct largest *largest);

/* The largest first, equal ones by address. */
allocation_id largest_at(const struct largest *largest, size_t number);
