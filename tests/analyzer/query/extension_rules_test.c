#include "analyzer/query/extension_rules.h"

#include "tests/assertions.h"

#include <string.h>

static const struct extension_rule *take_one(struct extension_rules *rules, const char *word)
{
	assert_no_error(extension_rules_take(rules, word));
	return &rules->list[rules->count - 1];
}

/* The rule's sides, and its arrow. */
static void assert_sides(const char *word, const char *member, enum arrow arrow,
			 const char *extension)
{
	_cleanup_(extension_rules_deinit) struct extension_rules rules = { 0 };
	const struct extension_rule *rule = take_one(&rules, word);

	assert_string_equal(rule->member_word, member);
	assert_int_equal(rule->arrow, arrow);
	assert_string_equal(rule->extension_word, extension);
}

TEST(arrow_parts_a_rule)
{
	assert_sides("->", "", ARROW_TO, "");
	assert_sides("a::A->b::B", "a::A", ARROW_TO, "b::B");
	assert_sides("A~>", "A", ARROW_TO_LEAKED, "");
	assert_sides("<-%LongString", "", ARROW_FROM, "%LongString");
	assert_sides("-->-", "-", ARROW_TO, "-");
	assert_sides("?<-?", "?", ARROW_FROM, "?");
	assert_sides("5000<-6000", "5000", ARROW_FROM, "6000");
}

TEST(arrows_in_names_part_nothing)
{
	assert_sides("Ring<-1>->", "Ring<-1>", ARROW_TO, "");
	assert_sides("->Ring<-1>", "", ARROW_TO, "Ring<-1>");
	assert_sides("Ring<-1><-Ring<-2>", "Ring<-1>", ARROW_FROM, "Ring<-2>");
	assert_sides("Map<int, Set<long> >->Map<int, Set<-5> >", "Map<int, Set<long> >", ARROW_TO,
		     "Map<int, Set<-5> >");
}

TEST(offsets_and_a_state_are_cut_off)
{
	_cleanup_(extension_rules_deinit) struct extension_rules rules = { 0 };
	const struct extension_rule *rule = take_one(&rules, "A@18->B<int>@0x10=>Next_1");

	assert_string_equal(rule->member_word, "A");
	assert_string_equal(rule->extension_word, "B<int>");
	assert_true(rule->has_member_offset);
	assert_int_equal(rule->member_offset, 0x18);
	assert_true(rule->has_extension_offset);
	assert_int_equal(rule->extension_offset, 0x10);
	assert_string_equal(rule->state_word, "Next_1");
	rule = take_one(&rules, "->");
	assert_false(rule->has_member_offset);
	assert_false(rule->has_extension_offset);
	assert_null(rule->state_word);
}

TEST(what_is_wrong_is_said_of_which_rule)
{
	static const struct {
		const char *word, *message;
	} mistakes[] = {
		{ "A", "rule 'A': there is no arrow in it: '->', '~>' or '<-'" },
		{ "A=>B", "rule 'A=>B': there is no arrow in it: '->', '~>' or '<-'" },
		{ "A@x->", "rule 'A@x->': 'x' is not an offset in hexadecimal" },
		{ "->@", "rule '->@': '' is not an offset in hexadecimal" },
		{ "->B@1@2", "rule '->B@1@2': '1@2' is not an offset in hexadecimal" },
		{ "->B=>", "rule '->B=>': a state is missing behind '=>'" },
		{ "->B=>1",
		  "rule '->B=>1': '1' is not a state: a word of letters, digits and underscores" },
		{ "->%Mop", "rule '->%Mop': unknown pattern 'Mop'" },
	};

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++) {
		_cleanup_(extension_rules_deinit) struct extension_rules rules = { 0 };

		assert_error(extension_rules_take(&rules, mistakes[i].word), ERROR_USAGE,
			     mistakes[i].message);
		assert_int_equal(rules.count, 0);
	}
}

TEST(member_that_is_a_state_makes_it_a_rule_of_it)
{
	_cleanup_(extension_rules_deinit) struct extension_rules rules = { 0 };

	take_one(&rules, "M->A=>N");
	take_one(&rules, "->B=>M");
	take_one(&rules, "N<-");
	take_one(&rules, "X->");
	assert_no_error(extension_rules_check(&rules));
	assert_int_equal(rules.list[1].state, BASE_STATE);
	assert_int_equal(rules.list[3].state, BASE_STATE);
	assert_int_equal(rules.list[3].next_state, BASE_STATE);
	assert_int_equal(rules.list[0].state, rules.list[1].next_state);
	assert_int_equal(rules.list[2].state, rules.list[0].next_state);
	assert_string_equal(extension_state_name(&rules, rules.list[2].state), "N");
	assert_null(extension_state_name(&rules, BASE_STATE));
	/* The kind of a state's members is any, that of others is not. */
	assert_int_equal(rules.list[0].member.choice, KIND_ANY);
	assert_int_equal(rules.list[3].member.choice, KIND_NAMED);
	/* To check them once more changes nothing. */
	assert_no_error(extension_rules_check(&rules));
	assert_int_equal(rules.state_count, 2);
}

static void check_all(const char *const *words, const char *message)
{
	_cleanup_(extension_rules_deinit) struct extension_rules rules = { 0 };

	for (; *words; words++)
		take_one(&rules, *words);
	assert_error(extension_rules_check(&rules), ERROR_USAGE, message);
}

TEST(rules_of_no_use_are_mistakes)
{
	check_all(
		(const char *const[]){ "M->A=>M", NULL },
		"nothing can be extended: every rule begins with a state, and the set itself has none");
	check_all((const char *const[]){ "%Mop->", NULL }, "rule '%Mop->': unknown pattern 'Mop'");
}

static void check_idle(const char *const *words, size_t idle, enum rule_idle expected)
{
	_cleanup_(extension_rules_deinit) struct extension_rules rules = { 0 };

	for (; *words; words++)
		take_one(&rules, *words);
	assert_no_error(extension_rules_check(&rules));
	for (size_t i = 0; i < rules.count; i++)
		assert_int_equal(rules.list[i].idle, i == idle ? expected : RULE_APPLIES);
}

TEST(rules_that_bring_nothing_in_are_marked)
{
	check_idle((const char *const[]){ "->", "M->A=>M", NULL }, 1, RULE_UNREACHED);
	check_idle((const char *const[]){ "->A", "->B", "->A=>M", "M->", NULL }, 2, RULE_REPEATED);
	check_idle((const char *const[]){ "->", "->", NULL }, 1, RULE_REPEATED);
}

TEST(rules_that_differ_are_no_repetition)
{
	_cleanup_(extension_rules_deinit) struct extension_rules rules = { 0 };

	take_one(&rules, "->A=>M");
	take_one(&rules, "->A@0=>M");
	take_one(&rules, "@0->A=>M");
	take_one(&rules, "~>A");
	take_one(&rules, "M->A");
	assert_no_error(extension_rules_check(&rules));
}
