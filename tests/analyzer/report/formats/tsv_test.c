#include "tests/analyzer/report/reported.h"

TEST(each_line_is_a_row_between_tabs)
{
	struct reported reported;

	reported_open(&reported, "tsv", false);
	report_sample(&reported.report);
	reported_close(&reported, "row\taddress\tsize\tthe_count\tseconds\tname\n"
				  "allocation\t0x7f0010\t1640\t\t0.250000\t"
				  "map<\"a|b\">\\t\\n\\x1b\\xff \xc3\xa4\n");
}

TEST(text_is_no_formula)
{
	static const struct table table = TABLE("class", NULL, { "name", VALUE_TEXT });
	struct reported reported;

	reported_open(&reported, "tsv", false);
	report_begin_table(&reported.report, &table);
	report_row(&reported.report, "=HYPERLINK(\"x\")");
	report_row(&reported.report, "a=b");
	report_end_table(&reported.report);
	reported_close(&reported, "row\tname\n"
				  "class\t'=HYPERLINK(\"x\")\n"
				  "class\ta=b\n");
}
