#include "analyzer/base/budget.h"

#include "tests/assertions.h"

TEST(steps_are_taken_while_there_are_some)
{
	struct budget budget = { 3 };

	assert_true(budget_take(&budget));
	assert_true(budget_take_many(&budget, 2));
	assert_true(budget_is_spent(&budget));
	assert_true(budget_take_many(&budget, 0));
}

TEST(a_budget_never_goes_below_zero)
{
	struct budget budget = { 1 };

	assert_true(budget_take(&budget));
	for (int i = 0; i < 3; i++)
		assert_false(budget_take(&budget));
	assert_int_equal(budget.left, 0);
}

TEST(what_does_not_suffice_is_spent)
{
	struct budget budget = { 5 };

	assert_false(budget_take_many(&budget, 6));
	assert_true(budget_is_spent(&budget));
	assert_false(budget_take(&budget));
}
