/*
 * cmocka, and assertions about errors, which they also destroy.
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
