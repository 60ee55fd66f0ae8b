/*
 * The dominators of a position, while walking along the dominators' row.
 *
 * A level is an allocation that dominates what follows it; those around a position are a stack. It
 * stays short: what is below the last position of a level needs no level above that one.
 */
#pragma once

#include "analyzer/base/array.h"

struct level {
	uint32_t end;	 /* behind the last position that it dominates */
	uint32_t number; /* of what the user of the levels makes of it */
	bool held;	 /* it is a member, or a member dominates it */
	bool is_body;	 /* of the one above, which has the number */
};

struct levels {
	ARRAY(struct level) stack;
};

/* Leave what does not reach the position; returns what dominates it at once, or NULL. */
static inline const struct level *levels_enter(struct levels *levels, size_t position)
{
	const struct level *all = levels->stack.items;
	size_t count = levels->stack.count;

	while (count && all[count - 1].end <= position)
		count--;
	levels->stack.count = count;
	return count ? &all[count - 1] : NULL;
}

static inline struct error *levels_push(struct levels *levels, struct level level)
{
	struct level *last = levels->stack.items + levels->stack.count;

	if (levels->stack.count && last[-1].end == level.end) {
		last[-1] = level;
		return NULL;
	}
	return array_append(&levels->stack, level);
}
