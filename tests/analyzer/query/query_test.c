#include "analyzer/query/query.h"

#include "tests/assertions.h"

#include <string.h>

static void take_word(struct set_query *query, const char *word)
{
	assert_no_error(query_take_word(query, word));
}

TEST(words_are_a_set_its_address_and_a_signature)
{
	_cleanup_(set_query_deinit) struct set_query query = { 0 };

	take_word(&query, "incoming");
	take_word(&query, "55d0c0ffee10");
	take_word(&query, "0x55bd4cec3ca0");
	assert_no_error(query_check(&query));
	assert_string_equal(query.set->name, "incoming");
	assert_int_equal(query.terms[0].arguments.values[0], 0x55d0c0ffee10);
	assert_int_equal(query.terms[0].kind.choice, KIND_SIGNATURE);
	assert_int_equal(query.terms[0].kind.signature, 0x55bd4cec3ca0);
	assert_error(query_take_word(&query, "1"), ERROR_USAGE,
		     "unexpected word '1': a set takes one signature");
}

TEST(dash_asks_for_allocations_without_signature)
{
	_cleanup_(set_query_deinit) struct set_query query = { 0 };

	take_word(&query, "used");
	take_word(&query, "-");
	assert_int_equal(query.terms[0].kind.choice, KIND_NONE);
}

TEST(what_is_missing_is_said)
{
	_cleanup_(set_query_deinit) struct set_query query = { 0 };

	assert_error(query_check(&query), ERROR_USAGE,
		     "a set is missing, such as 'used' or 'leaked'");
	take_word(&query, "outgoing");
	assert_error(query_check(&query), ERROR_USAGE, "a word is missing in 'outgoing ADDRESS'");
}

TEST(sizes_narrow_further_each_time)
{
	_cleanup_(set_query_deinit) struct set_query query = { 0 };

	assert_true(query_takes_size(&query, UINT64_MAX));
	assert_no_error(query_take_minimum(&query, "0x20"));
	assert_no_error(query_take_minimum(&query, "10"));
	assert_no_error(query_take_maximum(&query, "1K"));
	assert_no_error(query_take_maximum(&query, "2K"));
	assert_false(query_takes_size(&query, 0x1f));
	assert_true(query_takes_size(&query, 0x20));
	assert_true(query_takes_size(&query, 1024));
	assert_false(query_takes_size(&query, 1025));
	assert_no_error(query_take_size(&query, "64"));
	assert_true(query_takes_size(&query, 0x40));
	assert_false(query_takes_size(&query, 0x41));
}

TEST(every_set_is_found_by_its_name)
{
	const struct set *found;

	for (size_t i = 0; set_at(i); i++) {
		found = set_find(set_at(i)->name);
		assert_ptr_equal(found, set_at(i));
		assert_int_equal(!found->select + !found->ranges + !found->state, 2);
		/* Or describe could not tell it from an address. */
		assert_int_not_equal(found->name[strspn(found->name, "0123456789abcdefABCDEF")],
				     '\0');
	}
	assert_null(set_find("leakrots"));
	assert_error(set_unknown(NULL, "leakrots"), ERROR_USAGE,
		     "unknown set 'leakrots'; did you mean 'leakroots'?");
}

TEST(operators_stand_between_terms)
{
	static const char *const words[] = {
		"used", "%LongString", "minus", "big", "or", "incoming", "10", "-", "and", "leaked",
	};
	_cleanup_(set_query_deinit) struct set_query query = { 0 };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		take_word(&query, words[i]);
	assert_no_error(query_check(&query));
	assert_int_equal(query.term_count, 4);
	assert_string_equal(query.set->name, "used");
	assert_int_equal(query.terms[0].kind.choice, KIND_PATTERN);
	assert_int_equal(query.terms[1].operation, OPERATOR_MINUS);
	assert_ptr_equal(query.terms[1].set, &set_named);
	assert_string_equal(query.terms[1].arguments.name, "big");
	assert_int_equal(query.terms[1].kind.choice, KIND_ANY);
	assert_int_equal(query.terms[2].operation, OPERATOR_OR);
	assert_int_equal(query.terms[2].arguments.values[0], 0x10);
	assert_int_equal(query.terms[2].kind.choice, KIND_NONE);
	assert_int_equal(query.terms[3].operation, OPERATOR_AND);
	assert_ptr_equal(query.terms[3].set, set_find("leaked"));
}

TEST(behind_an_operator_stands_a_set)
{
	_cleanup_(set_query_deinit) struct set_query query = { 0 };
	_cleanup_(set_query_deinit) struct set_query places = { 0 };

	take_word(&query, "used");
	take_word(&query, "minus");
	assert_error(query_check(&query), ERROR_USAGE, "a set is missing at the end");
	take_word(&query, "stacks");
	assert_error(query_check(&query), ERROR_USAGE,
		     "'stacks' is not a set of allocations and cannot be combined with one");
	take_word(&places, "stacks");
	assert_error(query_take_word(&places, "and"), ERROR_USAGE,
		     "'stacks' is not a set of allocations and cannot be combined with one");
}

TEST(mistyped_operator_names_the_nearest)
{
	_cleanup_(set_query_deinit) struct set_query query = { 0 };

	take_word(&query, "used");
	take_word(&query, "minu");
	assert_error(query_take_word(&query, "leaked"), ERROR_USAGE,
		     "unknown word between sets 'minu'; did you mean 'minus'?");
}

TEST(set_of_ranges_does_not_become_derived)
{
	_cleanup_(set_query_deinit) struct set_query query = { 0 };

	take_word(&query, "stacks");
	assert_no_error(query_take_operation(&query, "subtract"));
	assert_int_equal(query.operation, OPERATION_SUBTRACT);
	assert_error(query_check(&query), ERROR_USAGE,
		     "'stacks' is not a set of allocations: it cannot become 'derived'");
	assert_error(query_take_operation(&query, "add"), ERROR_USAGE,
		     "'add' is not a set operation: assign or subtract");
}

/* Each is shown by its help, with something to type. */
TEST(every_set_has_an_example)
{
	for (size_t i = 0; set_at(i); i++)
		if (!set_at(i)->example || !strstr(set_at(i)->example, set_at(i)->name))
			fail_msg("'%s' lacks one", set_at(i)->name);
}
