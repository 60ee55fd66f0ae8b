/*
 * The members of a set by number: those of an array that has items for few of many.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/base/bitmap.h"

struct ranks {
	struct bitmap members;
	ARRAY(uint32_t) before; /* by word of these: how many are in those below */
	size_t count;		/* of members */
};

/* Number the members, who are fewer than 2^32; the bitmap is taken over, also if that fails. */
struct error *ranks_init(struct ranks *ranks, struct bitmap *members,
			 struct memory_account *account);
void ranks_deinit(struct ranks *ranks);
DEFINE_DEINIT(ranks_deinit, struct ranks)

/* The number of a member. */
static inline size_t ranks_of(const struct ranks *ranks, size_t member)
{
	uint64_t below = (UINT64_C(1) << (member % 64)) - 1;

	return ranks->before.items[member / 64] +
	       bits_count(ranks->members.words[member / 64] & below);
}
