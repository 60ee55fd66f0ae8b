#include "tests/analyzer/report/reported.h"

TEST(command_is_a_document)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	const struct report_subject subject = { "core", "count \"a b\"", &findings };
	struct reported reported;

	reported_open(&reported, "json", false);
	reported.report.subject = &subject;
	report_sample(&reported.report);
	reported_close(&reported, "{\n \"heapcore\": 2,\n \"core\": \"core\",\n"
				  " \"command\": \"count \\\"a b\\\"\",\n \"tables\": [\n"
				  "  {\"name\": \"allocation\", \"rows\": [\n"
				  "   {\"address\":\"0x7f0010\",\"size\":1640,"
				  "\"the_count\":null,\"seconds\":0.250000,\"name\":"
				  "\"map<\\\"a|b\\\">\\u0009\\u000a\\u001b\\\\xff \xc3\xa4\"}\n"
				  "  ]}\n ],\n \"findings\": [],\n \"complete\": true\n}\n");
}

TEST(kinds_of_columns_are_said_where_they_are_asked_for)
{
	static const struct table table =
		TABLE("a", NULL, { "at offset", VALUE_ADDRESS }, { "size", VALUE_BYTES },
		      { "mark", VALUE_TEXT, .reader = FOR_PEOPLE }, { "any", VALUE_ANY });
	struct reported reported;

	reported_open(&reported, "json", false);
	reported.report.with_kinds = true;
	report_begin_table(&reported.report, &table);
	report_end_table(&reported.report);
	reported_close(&reported,
		       "{\n \"heapcore\": 2,\n \"core\": null,\n \"command\": null,\n"
		       " \"tables\": [\n  {\"name\": \"a\", \"kinds\": {\"at_offset\":\"address\","
		       "\"size\":\"bytes\",\"any\":\"text\"}, \"rows\": []}\n ],\n"
		       " \"findings\": [],\n \"complete\": true\n}\n");
}

TEST(nothing_is_written_of_a_command_without_a_report)
{
	struct reported reported;

	reported_open(&reported, "json", false);
	reported_close(&reported, "");
}

/* A right-to-left override. */
TEST(unsafe_characters_are_escaped)
{
	static const struct table table = TABLE("r", NULL, { "t", VALUE_TEXT });
	struct reported reported;

	reported_open(&reported, "ndjson", false);
	report_single(&reported.report, &table, "\xe2\x80\xae");
	reported_close(&reported, "{\"row\":\"r\",\"t\":\"\\u202e\"}\n");
}

TEST(rows_go_to_all_reports_of_a_chain)
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

TEST(table_that_an_error_cuts_off_is_ended_before_another)
{
	static const struct table cut =
		TABLE("cut", NULL, { "size", VALUE_BYTES }, { "name", VALUE_TEXT });
	static const struct table failure = TABLE("failure", NULL, { "error", VALUE_TEXT });
	struct reported reported;
	struct report *report = &reported.report;

	reported_open(&reported, "json", false);
	report_begin_table(report, &cut);
	report_row(report, 8, "first");
	report_add(report, 16);
	report_cut_table(report);
	report_single(report, &failure, "why");
	report_cut_table(report);
	reported_close(&reported, "{\n \"heapcore\": 2,\n \"core\": null,\n \"command\": null,\n"
				  " \"tables\": [\n"
				  "  {\"name\": \"cut\", \"rows\": [\n"
				  "   {\"size\":8,\"name\":\"first\"}\n  ]},\n"
				  "  {\"name\": \"failure\", \"rows\": [\n"
				  "   {\"error\":\"why\"}\n  ]}\n"
				  " ],\n \"findings\": [],\n \"complete\": true\n}\n");
}
