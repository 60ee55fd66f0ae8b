#include "analyzer/base/error.h"

#include "tests/assertions.h"

TEST(nothing_found_is_complete)
{
	struct findings findings = { 0 };

	assert_false(findings_incomplete(&findings));
	findings_deinit(&findings);
}

TEST(note_does_not_make_the_analysis_incomplete)
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

TEST(list_is_bounded_but_all_are_counted)
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
