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
#pragma once

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

struct test_file {
	const char *path;
	CMFixtureFunction before, after; /* the first of its tests, and the last; or NULL */
	struct unit_test *tests;	 /* in the order of the file */
	size_t count;
	struct test_file *next;
};

void add_test(struct test_file *file, struct unit_test *test);

/* The test file that includes this header. */
__attribute__((unused)) static struct test_file test_file = { .path = __BASE_FILE__ };

#define AT_START(name_) __attribute__((constructor)) static void name_(void)

#define TEST(name_)                                                                              \
	static void test_##name_(void **state_);                                                 \
	AT_START(add_##name_)                                                                    \
	{                                                                                        \
		static struct unit_test test = { "test_" #name_, test_##name_, __LINE__, NULL }; \
                                                                                                 \
		add_test(&test_file, &test);                                                     \
	}                                                                                        \
	static void test_##name_(void **state_)

/* Functions to run before the first test of the file, and after the last: as in cmocka. */
#define AROUND_TESTS(before_, after_)       \
	AT_START(add_around_tests)          \
	{                                   \
		test_file.before = before_; \
		test_file.after = after_;   \
	}

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
