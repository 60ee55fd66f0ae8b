#include "analyzer/report/fit.h"
#include "tests/assertions.h"

#include <string.h>

static void assert_fitted(const char *text, size_t width, const char *expected)
{
	struct writer writer = { 0 };

	fit_lines(&writer, text, strlen(text), width);
	writer_put(&writer, '\0');
	assert_string_equal(writer.buffer, expected);
	writer_deinit(&writer);
}

TEST(lines_end_between_words)
{
	assert_fitted("one two three\n", 10, "one two\n    three\n");
	assert_fitted("one two three\n", 7, "one two\nthree\n");
	assert_fitted("one two three\n", 13, "one two three\n");
	assert_fitted("  one two three\n\nfour\n", 20, "  one two three\n\nfour\n");
	assert_fitted("   0:    12   345    6", 16, "   0:    12\n       345    6\n");
}

TEST(number_and_its_unit_stay_together)
{
	assert_fitted("taking (71.0 KiB), all", 14, "taking\n    (71.0 KiB),\n    all\n");
	assert_fitted("some 1,234 bytes", 12, "some\n    1,234 bytes\n");
	assert_fitted("one 7 sets KiB", 9, "one 7\nsets KiB\n");
}

TEST(word_wider_than_a_line_stands_alone)
{
	assert_fitted("see /usr/lib/debug now", 10, "see\n    /usr/lib/debug\n    now\n");
}

TEST(characters_and_colours_are_counted_as_they_are_seen)
{
	assert_fitted("caf\u00e9 caf\u00e9", 9, "caf\u00e9 caf\u00e9\n");
	assert_fitted("\033[1mcafe\033[0m cafe", 9, "\033[1mcafe\033[0m cafe\n");
}

TEST(word_in_a_column_is_shortened_in_its_middle)
{
	const struct fitting fitting = { .first = 9, .width = 9, .indent = 2, .shortened = true };
	struct writer writer = { 0 };

	fit_line(&writer, "a libstdc++.so.6", strlen("a libstdc++.so.6"), &fitting);
	writer_put(&writer, '\0');
	assert_string_equal(writer.buffer, "a\n  lib...o.6");
	writer_deinit(&writer);
}

static void assert_text(char *text, const char *expected)
{
	assert_string_equal(text, expected);
	free(text);
}

TEST(text_is_shortened_as_it_will_be_shown)
{
	assert_text(text_shortened("nine char", 9), "nine char");
	assert_text(text_shortened("ten letter", 9), "ten ...er");
	assert_text(text_shortened("map<int, set<int>> node", 13), "map<...> node");
	assert_text(text_shortened("map<int, set<int>> node", 12), "map<.....ode");
	assert_text(text_shortened("10 > 9 > 8 < 7", 9), "10 >... 7");
	assert_text(text_shortened("caf\u00e9caf\u00e9caf\u00e9", 9), "caf\u00e9...f\u00e9");
	assert_text(text_shortened("\a\a\a", 9), "\a...");
	assert_text(text_shortened("abcdef", 2), "...");
	assert_text(text_cut("nine char", 9), "nine char");
	assert_text(text_cut("ten letter", 9), "ten le...");
}

TEST(columns_give_way_by_rank)
{
	const struct fitted_column table[] = {
		{ "address", VALUE_ADDRESS, 14, 14 }, { "share of all", VALUE_SHARE, 16, 16 },
		{ "bytes lost", VALUE_BYTES, 7, 7 },  { "end", VALUE_ADDRESS, 14, 14 },
		{ "kind", VALUE_TEXT, 30, 12 },
	};
	static const struct {
		size_t width;
		bool stacked;
		size_t widths[5]; /* 0: hidden */
	} cases[] = {
		{ 0, false, { 14, 16, 10, 14, 30 } }, { 92, false, { 14, 16, 10, 14, 30 } },
		{ 91, true, { 14, 16, 7, 14, 30 } },  { 73, true, { 14, 16, 7, 14, 14 } },
		{ 60, true, { 14, 0, 7, 14, 19 } },   { 40, true, { 14, 0, 7, 0, 15 } },
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct fitted_column columns[5];

		memcpy(columns, table, sizeof(table));
		assert_int_equal(fit_columns(columns, 5, cases[i].width), cases[i].stacked);
		for (size_t column = 0; column < 5; column++)
			assert_int_equal(columns[column].hidden ? 0 : columns[column].width,
					 cases[i].widths[column]);
	}
}

TEST(minor_columns_give_way_first)
{
	struct fitted_column columns[] = {
		{ "thread", VALUE_NUMBER, 6, 6 },
		{ "stack start", VALUE_ADDRESS, 14, 14, .minor = true },
		{ "instruction", VALUE_ADDRESS, 14, 14 },
		{ "function", VALUE_TEXT, 8, 8 },
	};

	assert_true(fit_columns(columns, 4, 40));
	assert_true(columns[1].hidden);
	assert_false(columns[2].hidden);
}
