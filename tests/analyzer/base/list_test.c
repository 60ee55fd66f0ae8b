#include "analyzer/base/list.h"

#include "tests/assertions.h"

struct element {
	unsigned int start;
};

static void test_a_list_grows_one_by_one(void **state)
{
	unsigned int *list = NULL;

	for (unsigned int i = 0; i < 100; i++) {
		assert_true(LIST_GROW(list, i));
		list[i] = i;
	}
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(list[i], i);
	free(list);
}

static void test_the_first_above_is_found(void **state)
{
	const struct element list[] = { { 2 }, { 4 }, { 4 }, { 7 } };

	assert_int_equal(LIST_ABOVE(list, 4, start, 1U), 0);
	assert_int_equal(LIST_ABOVE(list, 4, start, 2U), 1);
	assert_int_equal(LIST_ABOVE(list, 4, start, 3U), 1);
	assert_int_equal(LIST_ABOVE(list, 4, start, 4U), 3);
	assert_int_equal(LIST_ABOVE(list, 4, start, 6U), 3);
	assert_int_equal(LIST_ABOVE(list, 4, start, 7U), 4);
	assert_int_equal(LIST_ABOVE(list, 0, start, 1U), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_list_grows_one_by_one),
		cmocka_unit_test(test_the_first_above_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
