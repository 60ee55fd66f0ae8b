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

static void test_lines_end_between_words(void **state)
{
	assert_fitted("one two three\n", 10, "one two\n    three\n");
	assert_fitted("one two three\n", 7, "one two\nthree\n");
	assert_fitted("one two three\n", 13, "one two three\n");
	assert_fitted("  one two three\n\nfour\n", 20, "  one two three\n\nfour\n");
	assert_fitted("   0:    12   345    6", 16, "   0:    12\n       345    6\n");
}

static void test_word_wider_than_a_line_stands_alone(void **state)
{
	assert_fitted("see /usr/lib/debug now", 10, "see\n    /usr/lib/debug\n    now\n");
}

static void test_characters_and_colours_are_counted_as_they_are_seen(void **state)
{
	assert_fitted("caf\u00e9 caf\u00e9", 9, "caf\u00e9 caf\u00e9\n");
	assert_fitted("\033[1mcafe\033[0m cafe", 9, "\033[1mcafe\033[0m cafe\n");
}

static void test_word_in_a_column_is_shortened_in_its_middle(void **state)
{
	const struct fitting fitting = { .first = 9, .width = 9, .indent = 2, .shortened = true };
	struct writer writer = { 0 };

	fit_line(&writer, "a libstdc++.so.6", strlen("a libstdc++.so.6"), &fitting);
	writer_put(&writer, '\0');
	assert_string_equal(writer.buffer, "a\n  lib...o.6");
	writer_deinit(&writer);
}

static void test_columns_give_way_by_rank(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_end_between_words),
		cmocka_unit_test(test_word_wider_than_a_line_stands_alone),
		cmocka_unit_test(test_characters_and_colours_are_counted_as_they_are_seen),
		cmocka_unit_test(test_word_in_a_column_is_shortened_in_its_middle),
		cmocka_unit_test(test_columns_give_way_by_rank),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
