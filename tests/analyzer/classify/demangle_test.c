#include "analyzer/classify/demangle.h"

#include "analyzer/base/cleanup.h"

#include "tests/assertions.h"

#include <string.h>

static void assert_type(const char *mangled, const char *expected)
{
	_cleanup_(free) char *name = demangle_type(mangled);

	assert_non_null(name);
	assert_string_equal(name, expected);
}

static void test_names_of_types_are_found(void **state)
{
	assert_type("3Foo", "Foo");
	assert_type("N3app7SessionE", "app::Session");
	assert_type("N12_GLOBAL__N_16HiddenE", "(anonymous namespace)::Hidden");
	assert_type("Z4mainE5Local", "main::Local");
	assert_type("6HolderIiE", "Holder<int>");
}

static void test_what_is_no_type_has_no_name(void **state)
{
	assert_null(demangle_type(""));
	assert_null(demangle_type("3Fo"));
	assert_null(demangle_type("%s%n"));
}

static void append_substitution(char *mangled, size_t number)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	sprintf(mangled + strlen(mangled), "S%c_E", digits[number]);
}

/*
 * Pairs of pairs: P<A, A>, then P of two of these, and so on. Each level takes six letters, and
 * doubles the name.
 */
static void make_pairs(size_t levels, char *ret)
{
	strcpy(ret, "1PI");
	for (size_t i = 1; i < levels; i++)
		strcat(ret, "S_I");
	strcat(ret, "1A");
	for (size_t i = 0; i < levels; i++)
		append_substitution(ret, i);
}

static void test_a_name_beyond_measure_is_none(void **state)
{
	char mangled[512];

	make_pairs(2, mangled);
	assert_type(mangled, "P<P<A, A>, P<A, A> >");
	make_pairs(10, mangled);
	free(demangle_type(mangled));
	make_pairs(36, mangled);
	assert_null(demangle_type(mangled));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_of_types_are_found),
		cmocka_unit_test(test_what_is_no_type_has_no_name),
		cmocka_unit_test(test_a_name_beyond_measure_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
