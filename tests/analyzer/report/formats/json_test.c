#include "tests/analyzer/report/reported.h"

static void test_command_is_a_document(void **state)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	const struct report_subject subject = { "core", "count \"a b\"", &findings };
	struct reported reported;

	reported_open(&reported, "json", false);
	reported.report.subject = &subject;
	report_sample(&reported.report);
	reported_close(&reported, "{\n \"heapcore\": 1,\n \"core\": \"core\",\n"
				  " \"command\": \"count \\\"a b\\\"\",\n \"tables\": [\n"
				  "  {\"name\": \"allocation\", \"rows\": [\n"
				  "   {\"address\":\"0x7f0010\",\"size\":1640,"
				  "\"the_count\":null,\"seconds\":0.250000,\"name\":"
				  "\"map<\\\"a|b\\\">\\u0009\\u000a\\u001b\\\\xff \xc3\xa4\"}\n"
				  "  ]}\n ],\n \"findings\": [],\n \"complete\": true\n}\n");
}

static void test_nothing_is_written_of_a_command_without_a_report(void **state)
{
	struct reported reported;

	reported_open(&reported, "json", false);
	reported_close(&reported, "");
}

/* A right-to-left override. */
static void test_unsafe_characters_are_escaped(void **state)
{
	static const struct table table = TABLE("r", NULL, { "t", VALUE_TEXT });
	struct reported reported;

	reported_open(&reported, "ndjson", false);
	report_single(&reported.report, &table, "\xe2\x80\xae");
	reported_close(&reported, "{\"row\":\"r\",\"t\":\"\\u202e\"}\n");
}

static void test_rows_go_to_all_reports_of_a_chain(void **state)
{
	struct reported first, second;

	reported_open(&first, "tsv", false);
	reported_open(&second, "ndjson", false);
	first.report.next = &second.report;
	report_sample(&first.report);
	first.report.next = NULL;
	assert_no_error(report_close(&first.report));
	assert_no_error(report_close(&second.report));
	fclose(first.file);
	fclose(second.file);
	assert_non_null(strstr(first.text, "allocation\t0x7f0010\t1640"));
	assert_non_null(strstr(second.text, "\"address\":\"0x7f0010\""));
	free(first.text);
	free(second.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_command_is_a_document),
		cmocka_unit_test(test_nothing_is_written_of_a_command_without_a_report),
		cmocka_unit_test(test_unsafe_characters_are_escaped),
		cmocka_unit_test(test_rows_go_to_all_reports_of_a_chain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
