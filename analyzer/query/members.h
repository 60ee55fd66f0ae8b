/*
 * The allocations that a query selects: a set, and the order in which they
 * were come upon, where that tells something: along a chain, or extending a
 * set from one allocation to the next.
 *
 * Comments tell how an extension came upon them. Each belongs in front of the
 * member of the order that its position numbers.
 */
#ifndef ANALYZER_QUERY_MEMBERS_H
#define ANALYZER_QUERY_MEMBERS_H

#include "analyzer/heap/index.h"

enum comment_kind {
	COMMENT_REFERENCES,	 /* from refers to to, and so brings it in */
	COMMENT_REFERENCED,	 /* from is referred to by to */
	COMMENT_VISITED,	 /* to is a member already */
	COMMENT_BASE_VISITED,	 /* to, of the base set, is one already */
	COMMENT_EXTENDED_IN,	 /* to will be extended in a state */
	COMMENT_NOT_EXTENDED_IN, /* to would have been */
	COMMENT_CYCLE,		 /* the chain comes back to to, and ends */
	COMMENT_BRANCHES,	 /* several lead to to: the chain ends */
};

struct member_comment {
	size_t position;
	enum comment_kind kind;
	allocation_id from, to; /* NO_ALLOCATION where there is none */
	const char *state; /* its label, borrowed from the query; or NULL */
};

struct members {
	struct bitmap set;
	struct memory order; /* allocation_id; none: by address */
	size_t order_count;
	struct memory comments; /* struct member_comment, by position */
	size_t comment_count;
	bool is_ordered; /* also if the order is empty */
};

/* For so many allocations; none is a member yet. */
struct error *members_init(struct members *members, size_t count,
			   struct memory_account *account);
void members_deinit(struct members *members);
DEFINE_DEINIT(members_deinit, struct members)

/* Add one that is no member yet, behind all others. */
struct error *members_append(struct members *members, allocation_id id);

/* What comes next is the comment, then the next member appended. */
struct error *members_comment(struct members *members,
			      struct member_comment comment);

#endif
