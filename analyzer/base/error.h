/*
 * What went wrong, as a value.
 *
 * A function that can fail returns a struct error *, and NULL for success. The caller owns the
 * error: it hands it on, wraps it, or destroys it. Only cli/ shows one.
 */
#ifndef ANALYZER_BASE_ERROR_H
#define ANALYZER_BASE_ERROR_H

#include "analyzer/base/cleanup.h"

enum error_code {
	ERROR_NO_MEMORY,
	ERROR_SYSTEM,	     /* a system call failed */
	ERROR_BAD_DUMP,	     /* the dump says what cannot be */
	ERROR_NOT_SUPPORTED, /* a dump of a kind that is not understood */
	ERROR_USAGE,	     /* the user asked for what does not exist */
	ERROR_INTERRUPTED,   /* the user no longer wants the answer */
	ERROR_FOUND,	     /* what a gate looks for is there */
};

struct error;

/* May be returned by anyone, any number of times; destroying it is harmless. */
extern struct error error_no_memory;

struct error *error_create(enum error_code code, const char *format, ...)
	__attribute__((format(printf, 2, 3), returns_nonnull));

/* The same, with ": " and the text of errno behind the message. */
struct error *error_system(const char *format, ...)
	__attribute__((format(printf, 1, 2), returns_nonnull));

/* Put "context: " in front of the message. Consumes and returns the error. */
struct error *error_wrap(struct error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The first of two that may be NULL; the other is destroyed. */
struct error *error_first(struct error *error, struct error *other);

void error_destroy(struct error *error);
DEFINE_CLEANUP(error_destroy, struct error *)

enum error_code error_code(const struct error *error);
const char *error_message(const struct error *error);

#endif
