#include "analyzer/base/list.h"

#include "tests/assertions.h"

struct element {
	unsigned int start;
};

TEST(a_list_grows_one_by_one)
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

TEST(the_first_above_is_found)
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
