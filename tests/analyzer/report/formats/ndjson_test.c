#include "tests/analyzer/report/reported.h"

TEST(each_line_is_an_object)
{
	struct reported reported;

	reported_open(&reported, "ndjson", false);
	report_sample(&reported.report);
	reported_close(
		&reported,
		"{\"row\":\"allocation\",\"address\":\"0x7f0010\",\"size\":1640,\"the_count\":null,\"seconds\":0.250000,\"name\":\"map<\\\"a|b\\\">\\u0009\\u000a\\u001b\\\\xff \xc3\xa4\"}\n");
}

TEST(end_says_whether_all_could_be_analysed)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	const struct report_subject subject = { "core", "count used", &findings };
	struct reported reported;

	findings_add(&findings, FINDING_INCOMPLETE, "the core is truncated");
	reported_open(&reported, "ndjson", false);
	reported.report.subject = &subject;
	report_sample(&reported.report);
	assert_no_error(report_close(&reported.report));
	fclose(reported.file);
	assert_non_null(strstr(
		reported.text,
		"{\"row\":\"finding\",\"incomplete\":true,\"message\":\"the core is truncated\"}\n"
		"{\"row\":\"end\",\"complete\":false}\n"));
	free(reported.text);
}
