/*
 * Counting and repeating, for the preprocessor; the smaller and the larger of two numbers.
 */
#pragma once

#include <stdarg.h>
#include <stdio.h>

/* How many elements the array has; not for pointers. */
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* They evaluate one of the two a second time. */
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* macro(a) macro(b) macro(c), for up to 84 arguments. */
#define FOR_EACH(macro, ...) __VA_OPT__(RESCAN(FOR_EACH_STEP(macro, __VA_ARGS__)))
#define FOR_EACH_STEP(macro, first, ...) \
	macro(first) __VA_OPT__(FOR_EACH_NEXT PARENTHESES(macro, __VA_ARGS__))
#define FOR_EACH_NEXT() FOR_EACH_STEP
#define PARENTHESES	()
#define RESCAN(...)	RESCAN_16(RESCAN_16(RESCAN_16(RESCAN_16(__VA_ARGS__))))
#define RESCAN_16(...)	RESCAN_4(RESCAN_4(RESCAN_4(RESCAN_4(__VA_ARGS__))))
#define RESCAN_4(...)	RESCAN_1(RESCAN_1(RESCAN_1(RESCAN_1(__VA_ARGS__))))
#define RESCAN_1(...)	__VA_ARGS__

/*
 * Fill slots of a contract by the functions of their names: FILL_SLOTS(perl, open, close) is
 * .open = perl_open, .close = perl_close.
 */
#define FILL_SLOTS(...) RESCAN(FILL_STEP(__VA_ARGS__))
#define FILL_STEP(part, first, ...) \
	.first = part##_##first __VA_OPT__(, FILL_NEXT PARENTHESES(part, __VA_ARGS__))
#define FILL_NEXT() FILL_STEP

/* The text of a function's arguments behind format, allocated; NULL if memory is short. */
#define FORMATTED(format)                                             \
	({                                                            \
		va_list arguments_;                                   \
		char *formatted_;                                     \
                                                                      \
		va_start(arguments_, format);                         \
		if (vasprintf(&formatted_, (format), arguments_) < 0) \
			formatted_ = NULL;                            \
		va_end(arguments_);                                   \
		formatted_;                                           \
	})
