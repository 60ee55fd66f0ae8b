#include "tests/analyzer/report/reported.h"

static const uint8_t *two_bytes_then_none(const void *source, uint64_t address, uint64_t *ret_size)
{
	*ret_size = 2;
	return address < 0x1002 ? source : NULL;
}

TEST(each_table_has_its_names_and_each_row_its_kind)
{
	static const struct table table = TABLE(
		"allocation", "Only text has sentences.", { "address", VALUE_ADDRESS },
		{ "size", VALUE_BYTES }, { "count", VALUE_COUNT }, { "contents", VALUE_MEMORY });
	const struct memory_view view = {
		.address = 0x1000, .size = 4, .bytes = two_bytes_then_none, .source = "\x0a\xb0"
	};
	struct reported reported;

	reported_open(&reported, "csv", false);
	report_single(&reported.report, &table, 0x7f0010, 1640, ABSENT, &view);
	reported_close(&reported, "row,address,size,count,contents\r\n"
				  "allocation,0x7f0010,1640,,0ab0(2 bytes that "
				  "are not in the dump)\r\n");
}

TEST(separators_are_quoted_and_control_is_escaped)
{
	static const struct table table =
		TABLE("thing", NULL, { "a, b", VALUE_TEXT }, { "c", VALUE_TEXT });
	struct reported reported;

	reported_open(&reported, "csv", false);
	report_single(&reported.report, &table, "map<int, \"x\">", "a\r\nb\033");
	reported_close(&reported, "row,\"a,_b\",c\r\n"
				  "thing,\"map<int, \"\"x\"\">\",a\\x0d\\nb\\x1b\r\n");
}

TEST(backslashes_are_as_they_are)
{
	static const struct table table = TABLE("class", NULL, { "name", VALUE_TEXT });
	struct reported reported;

	reported_open(&reported, "csv", false);
	report_single(&reported.report, &table, "App\\Node");
	reported_close(&reported, "row,name\r\n"
				  "class,App\\Node\r\n");
}

TEST(text_is_no_formula)
{
	static const struct table table = TABLE("class", NULL, { "name", VALUE_TEXT });
	struct reported reported;

	reported_open(&reported, "csv", false);
	report_begin_table(&reported.report, &table);
	report_row(&reported.report, "=HYPERLINK(\"x\")");
	report_row(&reported.report, "a=b");
	report_end_table(&reported.report);
	reported_close(&reported, "row,name\r\n"
				  "class,\"'=HYPERLINK(\"\"x\"\")\"\r\n"
				  "class,a=b\r\n");
}

TEST(share_is_a_number)
{
	struct reported reported;

	reported_open(&reported, "csv", false);
	report_shares(&reported.report);
	reported_close(&reported, "row,share,count\r\n"
				  "part,0.500000,0\r\n"
				  "part,0.025000,1\r\n"
				  "part,0.001000,2\r\n"
				  "part,0.000000,3\r\n");
}
