#include "tests/analyzer/report/reported.h"

TEST(markup_in_names_is_escaped)
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

TEST(table_without_rows_is_left_out)
{
	static const struct table table = TABLE("thing", NULL, { "name", VALUE_TEXT });
	struct reported reported;

	reported_open(&reported, "markdown", false);
	report_begin_table(&reported.report, &table);
	report_end_table(&reported.report);
	reported_close(&reported, "");
}
