#include "analyzer/base/error.h"

#include "tests/assertions.h"

static void test_nothing_found_is_complete(void **state)
{
	struct findings findings = { 0 };

	assert_false(findings_incomplete(&findings));
	findings_deinit(&findings);
}

static void test_note_does_not_make_the_analysis_incomplete(void **state)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };

	findings_add(&findings, FINDING_NOTE, "%d bytes", 5);
	assert_false(findings_incomplete(&findings));
	findings_add(&findings, FINDING_INCOMPLETE, "the heap is damaged");
	assert_true(findings_incomplete(&findings));
	assert_int_equal(findings.count, 2);
	assert_string_equal(findings.list[0].message, "5 bytes");
	assert_int_equal(findings.list[0].weight, FINDING_NOTE);
	assert_string_equal(findings.list[1].message, "the heap is damaged");
	assert_int_equal(findings.list[1].weight, FINDING_INCOMPLETE);
}

static void test_list_is_bounded_but_all_are_counted(void **state)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };

	for (int i = 0; i < 3 * MAXIMUM_FINDINGS; i++)
		findings_add(&findings, FINDING_NOTE, "note %d", i);
	/* Many notes leave room for what weighs more. */
	findings_add(&findings, FINDING_INCOMPLETE, "the core is truncated");
	assert_int_equal(findings.count, MAXIMUM_FINDINGS + 1);
	assert_int_equal(findings.weighed[FINDING_NOTE], 3 * MAXIMUM_FINDINGS);
	assert_int_equal(findings.weighed[FINDING_INCOMPLETE], 1);
	assert_string_equal(findings.list[0].message, "note 0");
	assert_string_equal(findings.list[MAXIMUM_FINDINGS].message, "the core is truncated");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_found_is_complete),
		cmocka_unit_test(test_note_does_not_make_the_analysis_incomplete),
		cmocka_unit_test(test_list_is_bounded_but_all_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
