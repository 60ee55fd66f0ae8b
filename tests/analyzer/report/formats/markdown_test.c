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

static void test_markup_in_names_is_escaped(void **state)
{
	struct reported reported;

	reported_open(&reported, "markdown", false);
	report_row(&reported.report);
	reported_close(&reported,
		       "| address | size | the count | seconds | name |\n"
		       "|---|--:|--:|--:|---|\n"
		       "| 0x7f0010 | 1,640 |  | 0.250000 | "
		       "map\\<\"a\\|b\"\\>\\\\t\\\\n\\\\x1b\\\\xff "
		       "\xc3\xa4 |\n\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_markup_in_names_is_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
