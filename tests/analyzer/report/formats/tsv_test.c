#include "tests/analyzer/report/reported.h"

/* A row with a value of each kind, the text hostile, the count absent. */
static void report_row(struct report *report)
{
	static const struct column columns[] = {
		{ "address", VALUE_ADDRESS }, { "size", VALUE_BYTES },
		{ "the count", VALUE_COUNT }, { "seconds", VALUE_SECONDS },
		{ "name", VALUE_TEXT },
	};
	static const struct table table = { "allocation", columns, 5,
					    "Only text has sentences." };

	report_begin_table(report, &table);
	report_number(report, 0x7f0010);
	report_number(report, 1640);
	report_absent(report);
	report_real(report, 0.25);
	report_text(report, "map<\"a|b\">\t\n\x1b\xff \xc3\xa4");
	report_end_row(report);
	report_end_table(report);
}

static void test_each_line_is_a_row_between_tabs(void **state)
{
	struct reported reported;

	reported_open(&reported, "tsv", false);
	report_row(&reported.report);
	reported_close(&reported,
		       "row\taddress\tsize\tthe count\tseconds\tname\n"
		       "allocation\t0x7f0010\t1640\t\t0.250000\t"
		       "map<\"a|b\">\\t\\n\\x1b\\xff \xc3\xa4\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_line_is_a_row_between_tabs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
