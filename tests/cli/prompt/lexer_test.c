#include "cli/prompt/lexer.h"

#include "tests/assertions.h"

#include <string.h>

/* Check that text splits into words, written with `/` between them. */
static void check_words(const char *text, const char *words)
{
	_cleanup_(line_deinit) struct line line = { 0 };
	char joined[256] = "";

	assert_no_error(line_split(text, &line));
	for (size_t i = 0; i < line.count; i++) {
		strcat(joined, i ? "/" : "");
		strcat(joined, line.words[i]);
	}
	assert_string_equal(joined, words);
}

static void check_target(const char *text, const char *words, enum destination destination,
			 const char *target)
{
	_cleanup_(line_deinit) struct line line = { 0 };

	check_words(text, words);
	assert_no_error(line_split(text, &line));
	assert_int_equal(line.destination, destination);
	assert_string_equal(line.target, target);
}

static void check_error(const char *text, const char *message)
{
	_cleanup_(line_deinit) struct line line = { 0 };

	assert_error(line_split(text, &line), ERROR_USAGE, message);
	assert_int_equal(line.count, 0);
}

TEST(words_are_split_at_blanks)
{
	check_words("count used", "count/used");
	check_words("  count\tused \r", "count/used");
	check_words("", "");
	check_words(" \t", "");
}

TEST(comment_begins_only_where_a_word_would)
{
	check_words("# count used", "");
	check_words("count used # > | 'x", "count/used");
	check_words("count {lambda()#1}", "count/{lambda()#1}");
	check_words("count '#x'", "count/#x");
}

TEST(quotes_group_and_hide)
{
	check_words("count \"a b\" 'c \"d'", "count/a b/c \"d");
	check_words("--extend->\"map<int, int>\"->x", "--extend->map<int, int>->x");
	check_words("count ''", "count/");
	check_words("count '> x' '| y'", "count/> x/| y");
}

TEST(open_quote_is_an_error)
{
	check_error("count 'used", "the quote in 'used is not closed");
	check_error("count used > \"x", "the quote in \"x is not closed");
}

TEST(arrows_within_words_are_no_redirection)
{
	check_words("count used /extend a->b=>c", "count/used//extend/a->b=>c");
	check_words("count used /extend ->%Map=>M", "count/used//extend/->%Map=>M");
}

TEST(output_goes_to_a_file)
{
	check_target("count used > out", "count/used", TO_FILE, "out");
	check_target("count used >out # why", "count/used", TO_FILE, "out");
	check_target("count used >> 'my file' ", "count/used", TO_APPEND, "my file");
}

TEST(file_must_be_there_and_last)
{
	check_error("count used >", "the name of a file is missing behind '>'");
	check_error("count used > # x", "the name of a file is missing behind '>'");
	check_error("count used > a b",
		    "'b' follows the file of '>', which must be the last on the line");
	check_error("count used > a | cat",
		    "'| cat' follows the file of '>', which must be the last on the line");
	check_error(" > a", "there is no command in front of '>'");
}

TEST(rest_behind_a_bar_is_the_shells)
{
	check_target("list used | grep 'a  b' > x # y ", "list/used", TO_SHELL,
		     "grep 'a  b' > x # y");
	check_target("list used|less", "list/used", TO_SHELL, "less");
	check_error("list used | ", "a shell command is missing behind '|'");
	check_error("| less", "there is no command in front of '|'");
}

TEST(backslash_at_the_end_continues)
{
	assert_true(line_continues("count used \\"));
	assert_true(line_continues("\\"));
	assert_true(line_continues("count '#' \\"));
	assert_false(line_continues("count used"));
	assert_false(line_continues("count \\ used"));
	assert_false(line_continues("count # used \\"));
	assert_false(line_continues(""));
}

TEST(very_long_lines_are_split)
{
	enum { WORDS = 100000 };
	_cleanup_(line_deinit) struct line line = { 0 };
	_cleanup_(free) char *text = malloc(2 * WORDS + 1);

	for (size_t i = 0; i < WORDS; i++)
		memcpy(text + 2 * i, "x ", 2);
	text[2 * WORDS] = '\0';
	assert_no_error(line_split(text, &line));
	assert_int_equal(line.count, WORDS);
}

TEST(a_statement_of_sql_is_one_word_with_its_quotes)
{
	check_words("sql SELECT a FROM b WHERE c = 'd e'", "sql/SELECT a FROM b WHERE c = 'd e'");
	check_words("  sql  select '|' || \"x\" > 1", "sql/select '|' || \"x\" > 1");
	check_words("sql --format csv WITH t AS (SELECT 1) SELECT * FROM t --table result",
		    "sql/--format/csv/WITH t AS (SELECT 1) SELECT * FROM t/--table/result");
	check_words("sql SELECT 1; SELECT ';' -- two", "sql/SELECT 1; SELECT ';' -- two");
	check_target("sql SELECT 1 > 0; > file", "sql/SELECT 1 > 0", TO_FILE, "file");
	check_target("sql VALUES ('a|b') ; | cat -n", "sql/VALUES ('a|b') ", TO_SHELL, "cat -n");
	check_error("sql SELECT 'a", "the quote in 'a is not closed");
}

TEST(a_quoted_statement_and_other_commands_are_as_ever)
{
	check_words("sql 'SELECT 1'", "sql/SELECT 1");
	check_target("sql .tables > file", "sql/.tables", TO_FILE, "file");
	check_words("sqlite SELECT 'a'", "sqlite/SELECT/a");
	check_target("help SELECT | cat", "help/SELECT", TO_SHELL, "cat");
}
