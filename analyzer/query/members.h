/*
 * The allocations that a query selects: a set, and the order in which they were found, where
 * that tells something: along a chain, or extending a set from one allocation to the next.
 *
 * Comments say how an extension reached them, or why a chain ended. Each belongs in front of the
 * member of the order that its position numbers.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/heap/index.h"

enum comment_kind {
	COMMENT_REFERENCES,   /* from refers to to, and so brings it in */
	COMMENT_REFERENCED,   /* from is referred to by to */
	COMMENT_BASE_VISITED, /* to, of the base set, was brought in before */
	COMMENT_CYCLE,	      /* the chain comes back to to, and ends */
	COMMENT_BRANCHES,     /* several lead to to: the chain ends */
	COMMENT_STATE,	      /* state names a class, too: it is the state */
	COMMENT_REPEATED,     /* the rule, in state, adds nothing to another */
	COMMENT_UNREACHED,    /* the rule, in state, is of a state never met */
	COMMENT_HEXADECIMAL,  /* nothing has the size in state, but to has it in hexadecimal */
};

struct member_comment {
	size_t position;
	const char *state; /* in which to is extended, or a rule; borrowed */
	enum comment_kind kind;
	allocation_id from, to; /* NO_ALLOCATION where there is none */
	bool was_visited;	/* to: it is not extended once more */
};

/* True if it is a warning, rather than how members were reached. */
static inline bool comment_is_warning(const struct member_comment *comment)
{
	return comment->kind == COMMENT_CYCLE || comment->kind == COMMENT_BRANCHES ||
	       comment->kind == COMMENT_STATE || comment->kind == COMMENT_REPEATED ||
	       comment->kind == COMMENT_UNREACHED || comment->kind == COMMENT_HEXADECIMAL;
}

/* In which order to show them. */
enum sort_key { SORT_DEFAULT, SORT_ADDRESS, SORT_COUNT, SORT_BYTES, SORT_RETAINED };

struct members {
	struct bitmap set;
	ARRAY(allocation_id) order;	       /* none: by address */
	ARRAY(struct member_comment) comments; /* by position */
	ARRAY(uint16_t) states;		       /* by allocation: see members_state() */
	bool is_ordered;		       /* also if the order is empty */
};

/* For so many allocations; none is a member yet. */
struct error *members_init(struct members *members, size_t count, struct memory_account *account);
void members_deinit(struct members *members);
DEFINE_DEINIT(members_deinit, struct members)

/* Add one that is no member yet, behind all others. */
struct error *members_append(struct members *members, allocation_id id);

/* Note the state, not 0, in which an extension reached the member. */
struct error *members_set_state(struct members *members, allocation_id id, uint16_t state);

/* The member's state; 0: the base state, or states are not recorded. */
static inline uint16_t members_state(const struct members *members, allocation_id id)
{
	return members->states.items ? members->states.items[id] : 0;
}

/* Leave only members number 1, base, base * base and so on, in their order. */
void members_sample(struct members *members, uint64_t base);

/* Add a comment in front of the next member appended. */
struct error *members_comment(struct members *members, struct member_comment comment);

/* Add those of others, behind all members. */
struct error *members_add_comments(struct members *members, const struct members *others);
