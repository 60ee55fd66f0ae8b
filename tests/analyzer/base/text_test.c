#include "analyzer/base/text.h"

#include "tests/assertions.h"

#include <string.h>

static uint64_t address_of(const char *word)
{
	uint64_t address = 0;

	assert_no_error(parse_address(word, &address));
	return address;
}

static uint64_t size_of(const char *word)
{
	uint64_t size = 0;

	assert_no_error(parse_size(word, &size));
	return size;
}

TEST(addresses_are_hexadecimal_with_or_without_prefix)
{
	assert_int_equal(address_of("10"), 0x10);
	assert_int_equal(address_of("0x10"), 0x10);
	assert_int_equal(address_of("0XfF"), 0xff);
	assert_int_equal(address_of("ffffffffffffffff"), UINT64_MAX);
	assert_true(is_address("deadbeef"));
	assert_false(is_address("used"));
	assert_false(is_address("-"));
}

TEST(what_is_no_address_is_named_in_the_error)
{
	uint64_t address = 7;

	assert_error(parse_address("0x", &address), ERROR_USAGE, "'0x' is not an address");
	assert_error(parse_address("", &address), ERROR_USAGE, "'' is not an address");
	assert_error(parse_address("-1", &address), ERROR_USAGE, "'-1' is not an address");
	assert_error(parse_address(" 1", &address), ERROR_USAGE, "' 1' is not an address");
	assert_error(parse_address("10000000000000000", &address), ERROR_USAGE,
		     "'10000000000000000' is not an address");
	assert_error(parse_address("1\033[m", &address), ERROR_USAGE,
		     "'1\\x1b[m' is not an address");
	assert_int_equal(address, 7);
}

TEST(sizes_are_decimal_unless_they_begin_with_0x)
{
	assert_int_equal(size_of("20"), 20);
	assert_int_equal(size_of("0x20"), 0x20);
	assert_int_equal(size_of("20K"), 20 << 10);
	assert_int_equal(size_of("64k"), 64 << 10);
	assert_int_equal(size_of("10M"), 10 << 20);
	assert_int_equal(size_of("3G"), UINT64_C(3) << 30);
}

TEST(size_in_bare_hexadecimal_digits_is_refused_unless_spelled_out)
{
	char buffer[NUMBER_SIZE];
	uint64_t size = 7;

	assert_error(parse_size("a8", &size), ERROR_USAGE,
		     "'a8' is not a size: hexadecimal ones begin with 0x");
	assert_string_equal(spell_hexadecimal("a8", buffer), "0xa8");
	assert_string_equal(spell_hexadecimal("0xa8", buffer), "0xa8");
	assert_string_equal(spell_hexadecimal("10K", buffer), "10K");
}

TEST(size_is_written_in_both_ways)
{
	char buffer[SIZE_SIZE];

	assert_string_equal(format_size(1032, buffer), "1,032 (0x408)");
	assert_string_equal(format_size(UINT64_MAX, buffer),
			    "18,446,744,073,709,551,615 (0xffffffffffffffff)");
}

TEST(what_is_no_size_is_named_in_the_error)
{
	static const char *const words[] = {
		"many", "K", "1KB", "0x1K", "aK", "1T", "18446744073709551615G",
	};
	uint64_t size = 7;

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		char message[64];

		snprintf(message, sizeof(message), "'%s' is not a size", words[i]);
		assert_error(parse_size(words[i], &size), ERROR_USAGE, message);
	}
	assert_int_equal(size, 7);
}

TEST(counts_are_decimal)
{
	uint64_t count = 0;

	assert_no_error(parse_count("0123", &count));
	assert_int_equal(count, 123);
	assert_no_error(parse_count("18446744073709551615", &count));
	assert_int_equal(count, UINT64_MAX);
	assert_error(parse_count("18446744073709551616", &count), ERROR_USAGE,
		     "'18446744073709551616' is not a count");
	assert_error(parse_count("1a", &count), ERROR_USAGE, "'1a' is not a count");
	assert_error(parse_count("0x1", &count), ERROR_USAGE, "'0x1' is not a count");
}

TEST(numbers_are_written_in_full)
{
	char buffer[NUMBER_SIZE];

	assert_int_equal(format_grouped(0, buffer), 1);
	assert_string_equal(buffer, "0");
	format_grouped(999, buffer);
	assert_string_equal(buffer, "999");
	format_grouped(1000, buffer);
	assert_string_equal(buffer, "1,000");
	assert_int_equal(format_grouped(UINT64_MAX, buffer), 26);
	assert_string_equal(buffer, "18,446,744,073,709,551,615");
	assert_int_equal(format_decimal(1234567, buffer), 7);
	assert_string_equal(buffer, "1234567");
	assert_int_equal(format_hexadecimal(0, buffer), 1);
	assert_string_equal(buffer, "0");
	format_hexadecimal(0xf, buffer);
	assert_string_equal(buffer, "f");
	format_hexadecimal(0x10, buffer);
	assert_string_equal(buffer, "10");
	assert_int_equal(format_hexadecimal(UINT64_MAX, buffer), 16);
	assert_string_equal(buffer, "ffffffffffffffff");
}

static const char *known_word(const void *data, size_t number)
{
	static const char *const words[] = { "leaked", "leakroots",	     "used", "free",
					     "stacks", "threadonlyanchored", NULL };

	return words[number];
}

static const char *nearest(const char *word)
{
	return nearest_word(word, known_word, NULL);
}

TEST(a_mistyped_word_finds_the_one_that_was_meant)
{
	assert_string_equal(nearest("leakd"), "leaked");
	assert_string_equal(nearest("laeked"), "leaked");
	assert_string_equal(nearest("leakedd"), "leaked");
	assert_string_equal(nearest("LEAKED"), "leaked");
	assert_string_equal(nearest("leakrots"), "leakroots");
	assert_string_equal(nearest("usde"), "used");
	assert_string_equal(nearest("stack"), "stacks");
	assert_string_equal(nearest("Thread"), "threadonlyanchored");
}

TEST(a_word_like_no_other_finds_none)
{
	char long_word[100];

	memset(long_word, 'a', sizeof(long_word) - 1);
	long_word[sizeof(long_word) - 1] = '\0';
	assert_null(nearest(""));
	assert_null(nearest("x"));
	assert_null(nearest("xyzzy"));
	assert_null(nearest("app::Session"));
	assert_null(nearest(long_word));
}

TEST(an_unknown_word_is_escaped_and_another_offered)
{
	assert_error(error_unknown("set", "leakd", nearest("leakd")), ERROR_USAGE,
		     "unknown set 'leakd'; did you mean 'leaked'?");
	assert_error(error_unknown("set", "\a", nearest("\a")), ERROR_USAGE, "unknown set '\\x07'");
}

TEST(a_run_of_text_ends_at_what_is_not_printable)
{
	assert_int_equal(text_run("", 1), 0);
	assert_int_equal(text_run("two\n lines\tand \xc3\xa4\0", 18), 17);
	assert_int_equal(text_run("cut \xc3", 5), 4);
	assert_int_equal(text_run("ab\x1b[1m", 6), 2);
	assert_int_equal(text_run("abc", 2), 2);
}

static void check_escaped(const char *text, const char *expected)
{
	_cleanup_(free) char *escaped = escape_text(text);

	assert_non_null(escaped);
	assert_string_equal(escaped, expected);
}

TEST(harmless_text_stays_as_it_is)
{
	check_escaped("", "");
	check_escaped("/usr/lib/libc.so.6 [heap]", "/usr/lib/libc.so.6 [heap]");
	check_escaped("Grüße, 世界 😀", "Grüße, 世界 😀");
}

TEST(what_a_terminal_obeys_is_escaped)
{
	check_escaped("\033[31mred\033[0m", "\\x1b[31mred\\x1b[0m");
	check_escaped("a\nb\tc\rd", "a\\nb\\tc\\x0dd");
	check_escaped("\x7f\x01", "\\x7f\\x01");
	check_escaped("C:\\x", "C:\\\\x");
	/* C1 controls, the right-to-left override, a line separator. */
	check_escaped("\xc2\x9b"
		      "31m",
		      "\\xc2\\x9b31m");
	check_escaped("\xe2\x80\xae", "\\xe2\\x80\\xae");
	check_escaped("\xe2\x80\xa8", "\\xe2\\x80\\xa8");
	check_escaped("\xe2\x81\xa6", "\\xe2\\x81\\xa6");
}

TEST(invalid_utf8_is_escaped_byte_by_byte)
{
	check_escaped("\xff", "\\xff");
	check_escaped("a\x80z", "a\\x80z");
	check_escaped("\xc3", "\\xc3");
	check_escaped("\xe4\xb8", "\\xe4\\xb8");
	check_escaped("\xc0\xaf", "\\xc0\\xaf");
	check_escaped("\xe0\x80\x80", "\\xe0\\x80\\x80");
	check_escaped("\xed\xa0\x80", "\\xed\\xa0\\x80");
	check_escaped("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
	check_escaped("\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80");
}
