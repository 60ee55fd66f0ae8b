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
