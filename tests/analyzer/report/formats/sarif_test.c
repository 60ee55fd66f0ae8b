#include "tests/analyzer/report/formats/gate_tables.h"

static char *report_one(const char *state, const struct findings *findings)
{
	const struct report_subject subject = { "/tmp/my core", "gate", findings };
	struct reported reported;

	reported_open(&reported, "sarif", false);
	reported.report.subject = &subject;
	report_leak(&reported.report, state, "map<\"a\">");
	report_gone(&reported.report);
	return reported_end(&reported);
}

TEST(leak_is_a_rule_and_a_result)
{
	_cleanup_(free) char *text = report_one("new", NULL);

	assert_has(
		text,
		"{\"id\": \"00000000000000ab\", \"shortDescription\": {\"text\": \"Leak of map<\\\"a\\\"> of 56 bytes\"}}");
	assert_has(
		text,
		"\"ruleId\": \"00000000000000ab\", \"level\": \"error\", \"message\": {\"text\": \"Certain leak, 2 x map<\\\"a\\\">: 3 allocations of 168 bytes lost in total; the first is at 0x7f0010.\"}");
	assert_has(text, "{\"uri\": \"file:///tmp/my%20core\"}");
	assert_has(
		text,
		"\"partialFingerprints\": {\"heapcoreLeak/v1\": \"00000000000000ab\"}, \"baselineState\": \"new\"}");
	assert_has(text, "\"executionSuccessful\": true");
}

TEST(baseline_tells_the_state)
{
	static const struct {
		const char *state, *expected;
	} cases[] = {
		{ "new", "\"baselineState\": \"new\"}" },
		{ "more", "\"baselineState\": \"updated\"}" },
		{ "known", "\"baselineState\": \"unchanged\"}" },
		{ "suppressed", "\"suppressions\": [{\"kind\": \"external\"}]" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_(free) char *text = report_one(cases[i].state, NULL);

		assert_has(text, cases[i].expected);
	}
}

TEST(what_is_gone_is_absent)
{
	_cleanup_(free) char *text = report_one("known", NULL);

	assert_has(
		text,
		"\"ruleId\": \"00000000000000cd\", \"level\": \"note\", \"message\": {\"text\": \"The leak of app::Order, 5 accepted by the baseline, is gone.\"}");
	assert_has(text, "\"baselineState\": \"absent\"}");
	assert_has_not(text, "\"error\"");
}

TEST(incomplete_analysis_is_no_success)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(free) char *text = NULL;

	findings_add(&findings, FINDING_INCOMPLETE, "cut short");
	text = report_one("new", &findings);
	assert_has(text, "\"executionSuccessful\": false");
	assert_has(text, "{\"level\": \"error\", \"message\": {\"text\": \"cut short\"}}");
}

TEST(leaks_of_a_fleet_are_results)
{
	struct reported reported;
	_cleanup_(free) char *text = NULL;

	reported_open(&reported, "sarif", false);
	report_new_leak(&reported.report, "app::Order");
	report_leaked_too_much(&reported.report);
	report_outcome(&reported.report, "failed");
	text = reported_end(&reported);
	assert_has(
		text,
		"{\"id\": \"00000000000000ef\", \"shortDescription\": {\"text\": \"Leak of app::Order\"}}");
	assert_has(
		text,
		"\"ruleId\": \"00000000000000ef\", \"level\": \"error\", \"message\": {\"text\": \"New leak of app::Order, first in build 1.5: 168 bytes in 3 cores on 2 hosts.\"}");
	assert_has(text, "{\"uri\": \"web1/core%201\"}");
	assert_has(text, "\"text\": \"web2/core leaked 9000 bytes.\"");
	assert_has(text, "\"text\": \"web3/core leaked 8000 bytes.\"");
	assert_non_null(strstr(text, "\"id\": \"max-leaked-bytes\""));
	assert_null(strstr(strstr(text, "\"id\": \"max-leaked-bytes\"") + 1,
			   "\"id\": \"max-leaked-bytes\""));
}

TEST(limit_that_is_exceeded_is_a_result)
{
	struct reported reported;
	_cleanup_(free) char *text = NULL;

	reported_open(&reported, "sarif", false);
	report_leak(&reported.report, "new", "app::Order");
	report_check(&reported.report, "failed");
	report_check_of(&reported.report, "--max-used 1", "failed");
	report_check_of(&reported.report, "--max-growth 1", "passed");
	report_outcome(&reported.report, "incomplete");
	text = reported_end(&reported);
	assert_has(text, "\"ruleId\": \"--max-used 1\", \"level\": \"error\"");
	assert_has_not(text, "--max-leaked 1");
	assert_has_not(text, "--max-growth 1");
	assert_has(text, "\"executionSuccessful\": false");
}
