/*
 * Limits the steps of a loop over data of a dump. A dump can hold lists that are circular, and
 * tables that share their entries, so every such loop takes its steps from a budget. Only these
 * functions count it down, and it never goes below zero: once one of them was false, all are.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct budget {
	uint64_t left;
};

/* Take that many steps. False: there are fewer, and none is left now. */
static inline bool budget_take_many(struct budget *budget, uint64_t steps)
{
	bool enough = steps <= budget->left;

	budget->left = enough ? budget->left - steps : 0;
	return enough;
}

/* Take a step. */
static inline bool budget_take(struct budget *budget)
{
	return budget_take_many(budget, 1);
}

static inline bool budget_is_spent(const struct budget *budget)
{
	return budget->left == 0;
}
