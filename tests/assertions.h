/*
 * cmocka; tests that register themselves; assertions about errors, which they also destroy.
 *
 * A unit test is a file of TEST()s without main(), which is in tests/main.c:
 *
 *	TEST(index_of_nothing_finds_nothing)
 *	{
 *		...
 *	}
 */
#ifndef TESTS_ASSERTIONS_H
#define TESTS_ASSERTIONS_H

#include "analyzer/base/error.h"

/* cmocka.h wants these in front of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct unit_test {
	const char *name;
	CMUnitTestFunction run;
	int line;
	struct unit_test *next;
};

void add_test(struct unit_test *test);

/* A file may define these: they run before the first test, and after the last. */
__attribute__((weak)) int before_tests(void **state);
__attribute__((weak)) int after_tests(void **state);

/* Tests run in the order of the file. */
#define TEST(name_)                                                                              \
	static void test_##name_(void **state_);                                                 \
	__attribute__((constructor)) static void add_##name_(void)                               \
	{                                                                                        \
		static struct unit_test test = { "test_" #name_, test_##name_, __LINE__, NULL }; \
                                                                                                 \
		add_test(&test);                                                                 \
	}                                                                                        \
	static void test_##name_(void **state_)

#define assert_no_error(call)                                  \
	do {                                                   \
		struct error *error_ = (call);                 \
		if (error_)                                    \
			fail_msg("%s", error_message(error_)); \
	} while (0)

/* With that code, and that message. */
#define assert_error(call, code, message)                            \
	do {                                                         \
		struct error *error_ = (call);                       \
		assert_non_null(error_);                             \
		assert_string_equal(error_message(error_), message); \
		assert_int_equal(error_code(error_), code);          \
		error_destroy(error_);                               \
	} while (0)

#endif
