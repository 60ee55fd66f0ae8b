/*
 * The main() of all unit tests: it runs the tests that the file registered.
 */
#include "analyzer/base/cleanup.h"
#include "tests/assertions.h"

#include <stdlib.h>

static struct unit_test *first_test;
static size_t test_count;

/* Constructors run in an order that the compiler chooses. */
void add_test(struct unit_test *test)
{
	struct unit_test **place = &first_test;

	while (*place && (*place)->line < test->line)
		place = &(*place)->next;
	test->next = *place;
	*place = test;
	test_count++;
}

int main(void)
{
	_cleanup_(free) struct CMUnitTest *tests = calloc(test_count + 1, sizeof(*tests));
	size_t i = 0;

	if (!tests)
		return EXIT_FAILURE;
	for (const struct unit_test *test = first_test; test; test = test->next)
		tests[i++] = (struct CMUnitTest){ .name = test->name, .test_func = test->run };
	return _cmocka_run_group_tests("tests", tests, test_count, before_tests, after_tests);
}
