#include "analyzer/gate/suppressions.h"

#include "analyzer/gate/label.h"
#include "tests/assertions.h"

#include <string.h>

static struct error *parse(const char *text, struct suppressions *ret)
{
	_cleanup_(free) char *copy = strdup(text);

	*ret = (struct suppressions){ 0 };
	return suppressions_parse(ret, copy, "file");
}

static struct leak_kind order(void)
{
	return (struct leak_kind){
		.fingerprint = 0x12ab,
		.name = (char *)"shop::Order<int>",
		.full_name = "shop::Order<int, std::allocator<int> >",
		.module = "libshop.so.2",
		.size = 96,
		.smallest_size = 72,
		.holder = (char *)"%VectorBody",
		.holder_module = "libqueue.so",
	};
}

/* True if that single rule names the leak. */
static bool names(const char *rule, const struct leak_kind *leak)
{
	_cleanup_(suppressions_deinit) struct suppressions rules;
	const char *found;

	assert_no_error(parse(rule, &rules));
	assert_int_equal(rules.count, 1);
	found = suppressions_find(&rules, leak);
	assert_int_equal(rules.list[0].matched, found != NULL);
	return found != NULL;
}

TEST(rules_name_leaks)
{
	struct leak_kind leak = order();
	static const char *const right[] = {
		"leak:Order",	    "leak:^shop::*int>$",
		"leak:libshop",	    "leak:allocator<int>",
		"leak:VectorBody",  "leak:libqueue.so$",
		"class:shop::*",    "class:shop::Order<int>",
		"size:72-96",	    "size:1-100",
		"module:libshop.*", "module:libqueue.so",
		"leak:*",	    "fingerprint:00000000000012ab",
	};
	static const char *const wrong[] = {
		"leak:order",  "leak:^Order", "leak:Order$",	"class:Order",
		"class:shop",  "pattern:*",   "size:72",	"size:80-100",
		"size:97-200", "module:shop", "module:libshop", "fingerprint:00000000000012ac",
	};

	for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++)
		assert_true(names(right[i], &leak));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_false(names(wrong[i], &leak));
}

TEST(patterns_and_what_is_not_recognized_are_no_classes)
{
	struct leak_kind body = { .name = (char *)"%LongString" };
	struct leak_kind unknown = { .name = (char *)UNRECOGNIZED };

	assert_true(names("pattern:LongString", &body));
	assert_true(names("pattern:%Long*", &body));
	assert_false(names("class:*", &body));
	assert_false(names("class:*", &unknown));
	assert_true(names("leak:unrecognized", &unknown));
}

TEST(comments_and_empty_lines_are_no_rules)
{
	_cleanup_(suppressions_deinit) struct suppressions rules;

	assert_no_error(parse("# all of it\n\n  \t\r\n leak:a \r\nsize:5", &rules));
	assert_int_equal(rules.count, 2);
	assert_string_equal(rules.list[0].text, "leak:a");
	assert_int_equal(rules.list[0].line, 4);
	assert_int_equal(rules.list[1].line, 5);
}

TEST(all_rules_that_name_a_leak_are_of_use)
{
	_cleanup_(suppressions_deinit) struct suppressions rules;
	struct leak_kind leak = order();

	assert_no_error(parse("leak:none\nleak:Order\nleak:shop", &rules));
	assert_string_equal(suppressions_find(&rules, &leak), "leak:Order");
	assert_false(rules.list[0].matched);
	assert_true(rules.list[1].matched);
	assert_true(rules.list[2].matched);
}

TEST(wrong_rules_are_said_with_their_line)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "\nrace:x",
		  "file:2: 'race:x' is not a rule: leak:, class:, pattern:, size:, module: or fingerprint: begins one" },
		{ "Order",
		  "file:1: 'Order' is not a rule: leak:, class:, pattern:, size:, module: or fingerprint: begins one" },
		{ "leak:", "file:1: 'leak:' is not a rule: nothing is behind the colon" },
		{ "size:9-5", "file:1: '9-5' is not a size, as 72, or 64-128: decimal bytes" },
		{ "size:99999999999999999999",
		  "file:1: '99999999999999999999' is not a size, as 72, or 64-128: decimal bytes" },
		{ "fingerprint:12", "file:1: '12' is not a fingerprint: 16 hexadecimal digits" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_(suppressions_deinit) struct suppressions rules;

		assert_error(parse(cases[i].text, &rules), ERROR_USAGE, cases[i].message);
	}
}

TEST(what_is_known_is_not_blamed_on_the_program)
{
	struct suppressions none = { 0 };
	struct leak_kind leaks[] = {
		{ .name = (char *)"a", .known_owner = "perl", .known_cause = "at its end" },
		{ .name = (char *)"a" },
	};
	struct leak_kinds kinds = { .list = leaks, .count = COUNT_OF(leaks) };

	suppressions_apply(&none, &kinds, false);
	assert_int_equal(leaks[0].state, LEAK_NEW);
	suppressions_apply(&none, &kinds, true);
	assert_int_equal(leaks[0].state, LEAK_SUPPRESSED);
	assert_true(leak_is_known(&leaks[0]));
	assert_int_equal(leaks[1].state, LEAK_NEW);
	assert_false(leak_is_known(&leaks[1]));
}

TEST(a_star_stands_for_any_text)
{
	assert_true(wildcard_matches("*", ""));
	assert_true(wildcard_matches("a*b*c", "aXbYbZc"));
	assert_false(wildcard_matches("a*b*c", "aXbYcZ"));
	assert_true(wildcard_matches("a**", "a"));
	assert_false(wildcard_matches("", "a"));
	assert_true(wildcard_found("b*d", "abcde"));
	assert_false(wildcard_found("^b", "abc"));
	assert_true(wildcard_found("c$", "abcc"));
	assert_false(wildcard_found("^b*d$", "abcd"));
	assert_true(wildcard_found("^a*d$", "abcd"));
	assert_true(wildcard_found("", "abc"));
	assert_false(wildcard_found("a*a*a*a*a*a*a*a*x", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}
