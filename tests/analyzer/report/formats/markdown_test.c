#include "tests/analyzer/report/reported.h"

static void test_markup_in_names_is_escaped(void **state)
{
	struct reported reported;

	reported_open(&reported, "markdown", false);
	report_sample(&reported.report);
	reported_close(
		&reported,
		"| address | size | the count | seconds | name |\n"
		"|---|--:|--:|--:|---|\n"
		"| 0x7f0010 | 1,640 |  | 0.250000 | map\\<\"a\\|b\"\\>\\\\t\\\\n\\\\x1b\\\\xff \xc3\xa4 |\n\n");
}

static void test_table_without_rows_is_left_out(void **state)
{
	static const struct table table = TABLE("thing", NULL, { "name", VALUE_TEXT });
	struct reported reported;

	reported_open(&reported, "markdown", false);
	report_begin_table(&reported.report, &table);
	report_end_table(&reported.report);
	reported_close(&reported, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_markup_in_names_is_escaped),
		cmocka_unit_test(test_table_without_rows_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
