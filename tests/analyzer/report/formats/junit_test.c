#include "tests/analyzer/report/formats/gate_tables.h"

TEST(new_leaks_and_failed_checks_are_failures)
{
	struct reported reported;
	_cleanup_(free) char *text = NULL;

	reported_open(&reported, "junit", false);
	report_leak(&reported.report, "new", "map<\"a\">\x1b");
	report_check(&reported.report, "failed");
	text = reported_end(&reported);
	assert_has(text, " tests=\"2\" failures=\"2\" errors=\"0\">");
	assert_has(
		text,
		"<testcase classname=\"heapcore.leaks\" name=\"00000000000000ab map&lt;&quot;a&quot;&gt;\\x1b\" time=\"0\">\n"
		"    <failure message=\"certain leak, 2 x "
		"map&lt;&quot;a&quot;&gt;\\x1b: 3 allocations, 168 bytes, "
		"the first at 0x7f0010\" type=\"leak\"/>");
	assert_has(text, "name=\"--max-leaked 1\" time=\"0\">\n"
			 "    <failure message=\"3 of at most 1\" "
			 "type=\"gate\"/>");
}

TEST(what_is_known_passes)
{
	struct reported reported;
	_cleanup_(free) char *text = NULL;

	reported_open(&reported, "junit", false);
	report_leak(&reported.report, "known", "app::Order");
	report_check(&reported.report, "passed");
	text = reported_end(&reported);
	assert_has(text, " tests=\"2\" failures=\"0\" errors=\"0\">");
	assert_has(text, "name=\"00000000000000ab app::Order\" time=\"0\"/>");
	assert_has_not(text, "<failure");
}

TEST(what_is_suppressed_is_skipped)
{
	struct reported reported;
	_cleanup_(free) char *text = NULL;

	reported_open(&reported, "junit", false);
	report_leak(&reported.report, "suppressed", "app::Order");
	text = reported_end(&reported);
	assert_has(text, " failures=\"0\" errors=\"0\" skipped=\"1\">");
	assert_has(text, "<skipped>certain leak, 2 x app::Order");
}

TEST(incomplete_analysis_is_an_error)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	const struct report_subject subject = { "core.1", "gate", &findings };
	struct reported reported;
	_cleanup_(free) char *text = NULL;

	findings_add(&findings, FINDING_INCOMPLETE, "cut <short>");
	reported_open(&reported, "junit", false);
	reported.report.subject = &subject;
	report_check(&reported.report, "passed");
	text = reported_end(&reported);
	assert_has(text, " tests=\"2\" failures=\"0\" errors=\"1\">");
	assert_has(text, "<property name=\"core\" value=\"core.1\"/>");
	assert_has(text, " type=\"incomplete\"/>");
	assert_has(text, "<system-err>cut &lt;short&gt;\n</system-err>");
}
