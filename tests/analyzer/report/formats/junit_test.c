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

TEST(leaks_of_a_fleet_are_failures)
{
	struct reported reported;
	_cleanup_(free) char *text = NULL;

	reported_open(&reported, "junit", false);
	report_new_leak(&reported.report, "app::Order");
	report_leaked_too_much(&reported.report);
	report_outcome(&reported.report, "failed");
	text = reported_end(&reported);
	assert_has(text, " tests=\"3\" failures=\"3\" errors=\"0\">");
	assert_has(text, "name=\"00000000000000ef app::Order\"");
	assert_has(
		text,
		"message=\"new leak of app::Order, first in build 1.5: 168 bytes in 3 cores on 2 hosts, most in web1/core 1\" type=\"leak\"");
	assert_has(text, "name=\"web3/core\" time=\"0\">\n"
			 "    <failure message=\"it leaked 8000 bytes\" type=\"gate\"/>");
}

TEST(gate_that_failed_or_cannot_tell_never_passes)
{
	static const struct {
		const char *outcome, *expected;
	} cases[] = {
		{ "failed", " tests=\"1\" failures=\"1\" errors=\"0\">" },
		{ "incomplete", " tests=\"1\" failures=\"0\" errors=\"1\">" },
		{ "passed", " tests=\"1\" failures=\"0\" errors=\"0\">" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct reported reported;
		_cleanup_(free) char *text = NULL;

		reported_open(&reported, "junit", false);
		report_outcome(&reported.report, cases[i].outcome);
		text = reported_end(&reported);
		assert_has(text, cases[i].expected);
	}
}
