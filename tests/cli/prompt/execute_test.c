#include "cli/prompt/execute.h"
#include "cli/prompt/switches.h"

#include "tests/assertions.h"

#include <string.h>

/* The arguments of a command, as text: "word key=value flag end". */
struct taken {
	char text[256];
};

static struct error *take_all(int key, const char *value, void *arguments)
{
	struct taken *taken = arguments;
	size_t length = strlen(taken->text);
	char *end = taken->text + length;
	size_t size = sizeof(taken->text) - length;

	if (key == ARGP_KEY_END)
		snprintf(end, size, ".");
	else if (key == ARGP_KEY_ARG)
		snprintf(end, size, "%s ", value);
	else if (value)
		snprintf(end, size, "%c=%s ", key, value);
	else
		snprintf(end, size, "%c ", key);
	return NULL;
}

static const struct argp_option options[] = {
	{ "show-up-to", 'n', "COUNT", 0, "Show only so much", 0 },
	{ "show-ascii", 'a', NULL, 0, "Show characters, too", 0 },
	{ "sort-by", 's', "count|bytes", 0, "Sort", 0 },
	{ 0 },
};

static struct error *run_nothing(struct analysis *analysis, const void *arguments,
				 struct report *report)
{
	return NULL;
}

static const struct command taker = {
	.name = "take",
	.word = WORD_SET,
	.options = options,
	.parse = take_all,
	.arguments_size = sizeof(struct taken),
};

static const struct command file_taker = {
	.name = "open",
	.word = WORD_FILE,
	.options = options,
	.parse = take_all,
	.arguments_size = sizeof(struct taken),
};

static struct error *parse(const struct command *command, const char *text, struct taken *ret)
{
	struct line line = { 0 };
	struct error *error = line_split(text, &line);

	*ret = (struct taken){ 0 };
	if (!error)
		error = switches_parse(command, line.words, line.count, ret,
				       &(struct common_switches){ 0 });
	line_deinit(&line);
	return error;
}

static void check(const struct command *command, const char *text, const char *expected)
{
	struct taken taken;

	assert_no_error(parse(command, text, &taken));
	assert_string_equal(taken.text, expected);
}

static void check_error(const char *text, const char *message)
{
	struct taken taken;

	assert_error(parse(&taker, text, &taken), ERROR_USAGE, message);
}

TEST(switches_have_either_spelling)
{
	check(&taker, "used --show-up-to 16 x", "used n=16 x .");
	check(&taker, "used --show-up-to=16", "used n=16 .");
	check(&taker, "used /showUpTo 16", "used n=16 .");
	check(&taker, "used /showupto 16 /SORTBY bytes", "used n=16 s=bytes .");
	check(&taker, "--sort-by= used", "s= used .");
	check(&taker, "", ".");
}

TEST(flags_take_a_value_only_in_the_older_spelling)
{
	check(&taker, "--show-ascii used", "a used .");
	check(&taker, "/showAscii true used", "a used .");
	check(&taker, "/showAscii false used", "used .");
	check_error("/showAscii used", "'/showAscii' is 'true' or 'false', not 'used'");
	check_error("--show-ascii=true", "'--show-ascii' takes no value");
}

TEST(value_is_the_next_word_whatever_it_is)
{
	check(&taker, "/showupto -> --sort-by --x", "n=-> s=--x .");
	check_error("used --sort-by", "'--sort-by' needs a value (count|bytes)");
	check_error("used /sortby", "'/sortby' needs a value (count|bytes)");
	check_error("used /showascii", "'/showascii' needs a value (true or false)");
}

TEST(unknown_switch_names_the_nearest)
{
	check_error("--sort-bi x", "'take' has no switch '--sort-bi'; did you mean '--sort-by'?");
	check_error("/showUptoo 1", "'take' has no switch '/showUptoo'; did you mean '/showupto'?");
	check_error("--zzz", "'take' has no switch '--zzz'");
	check_error("/", "'take' has no switch '/'");
	check_error("/sortby=bytes", "'/sortby' takes its value as the next word, without '='");
}

TEST(two_dashes_end_the_switches)
{
	check(&taker, "-- --sort-by /x --", "--sort-by /x -- .");
	check(&taker, "- -x -", "- -x - .");
}

TEST(path_is_no_switch_of_a_command_for_files)
{
	check(&file_taker, "/tmp/script /sortby x", "/tmp/script s=x .");
	check_error("/tmp/script", "'take' has no switch '/tmp/script'");
}

TEST(command_without_parse_stands_alone)
{
	static const struct command alone = { .name = "quit" };
	char *words[] = { "now" };

	assert_no_error(switches_parse(&alone, NULL, 0, NULL, NULL));
	assert_error(switches_parse(&alone, words, 1, NULL, NULL), ERROR_USAGE,
		     "unexpected word 'now' after 'quit'");
}

TEST(places_of_a_switch_include_its_value)
{
	assert_int_equal(switch_places(&taker, "--sort-by"), 2);
	assert_int_equal(switch_places(&taker, "--sort-by=x"), 1);
	assert_int_equal(switch_places(&taker, "--show-ascii"), 1);
	assert_int_equal(switch_places(&taker, "/showascii"), 2);
	assert_int_equal(switch_places(&taker, "used"), 0);
	assert_int_equal(switch_places(&taker, "--zzz"), 0);
}

static void check_redirect_name(const char *text, const char *expected)
{
	_cleanup_(line_deinit) struct line line = { 0 };
	_cleanup_(free) char *name = NULL;

	assert_no_error(line_split(text, &line));
	name = redirect_name("/var/cores/core.123", &taker, &line, NULL);
	assert_string_equal(name, expected);
}

TEST(redirected_output_is_named_by_the_words)
{
	check_redirect_name("count used", "core.123.count_used");
	check_redirect_name("count used /sortby bytes 'std::map<int, x/y>'",
			    "core.123.count_used_std__map_int__x_y_");
	check_redirect_name("count ../x", "core.123.count_.._x");
}

TEST(suffix_ends_the_name_of_redirected_output)
{
	_cleanup_(line_deinit) struct line line = { 0 };
	_cleanup_(free) char *name = NULL;

	struct command dump_taker = taker;

	dump_taker.run = run_nothing;
	assert_no_error(line_split("count used /redirectSuffix a/b", &line));
	name = redirect_name("core.123", &dump_taker, &line, "a/b");
	assert_string_equal(name, "core.123.count_used.a_b");
}

TEST(redirected_output_has_a_name_of_bounded_length)
{
	_cleanup_(line_deinit) struct line line = { 0 };
	_cleanup_(free) char *name = NULL;
	char text[5000];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_no_error(line_split(text, &line));
	name = redirect_name(text, &taker, &line, NULL);
	assert_int_equal(strlen(name), 255);
}

TEST(commands_are_found_by_name)
{
	assert_string_equal(command_find("help")->name, "help");
	assert_null(command_find("helper"));
	assert_string_equal(command_find("sum")->name, "summarize");
	assert_string_equal(command_find("bt")->name, "backtrace");
	assert_string_equal(command_find("x")->name, "dump");
	assert_string_equal(command_find("?")->name, "help");
	assert_null(command_find("s"));
	assert_null(command_find(""));
	assert_error(command_unknown("fi"), ERROR_USAGE, "'fi' may be 'find32', 'findbytes'");
	assert_error(command_unknown("hlep"), ERROR_USAGE,
		     "unknown command 'hlep'; did you mean 'help'?");
}
