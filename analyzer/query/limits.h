/*
 * Limits of how many allocations refer to a member of a set, or it to them.
 *
 *	--min-incoming 2    --max-outgoing %LongString=10
 *
 * Each allocation counts once, by however many words it refers or is referred to. Those of a kind
 * count alone where one is named.
 */
#pragma once

#include "analyzer/query/kind.h"
#include "analyzer/query/reference_choice.h"

/* Whom to count: used ones that refer here, used or free ones referred to. */
enum counted { COUNTED_INCOMING, COUNTED_OUTGOING, COUNTED_FREE_OUTGOING };

struct reference_limit {
	enum counted counted;
	bool is_maximum;
	uint64_t count;
	char *kind_word; /* text that kind borrows */
	struct kind kind;
};

struct reference_limits {
	struct reference_limit *list;
	size_t count;
};

void reference_limits_deinit(struct reference_limits *limits);
DEFINE_DEINIT(reference_limits_deinit, struct reference_limits)

/* Take one more, "[KIND=]COUNT". */
struct error *reference_limits_take(struct reference_limits *limits, enum counted counted,
				    bool is_maximum, const char *word);

/* Take away from members those outside of a limit. */
struct error *reference_limits_narrow(const struct reference_limits *limits,
				      struct reference_choice *choice, bool allow_missing,
				      struct bitmap *members);
